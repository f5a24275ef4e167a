"""Runs many experiments at once: requests, builds and judgements overlap, and everything resumes from files."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pkb.engine import Engine, Job, Phase
from pkb.generate.author import Author, WrittenAnswer
from pkb.generate.budget import BudgetSpent
from pkb.generate.experiment import Experiment, Stage
from pkb.generate.model import AskFailed
from pkb.generate.sample_files import Turn, compute_digest
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, ProblemSettings

_POLL_S = 0.2
"""Seconds between looks whether another process has finished a sample."""
_MAX_FAILURES = 8
"""After this many failures and no answer, the rest is not tried."""


@dataclass(frozen=True)
class Judging:
    """The engine that judges samples as they arrive, and what it is asked to do."""

    engine: Engine
    posed: ProblemSettings
    asked: JudgementSettings

    def make_job(self, experiment: Experiment, turn: Turn) -> Job:
        # What a model has read about one turn must not help it in the next.
        fresh = turn.number > 1 or bool(experiment.method.facts)
        candidate = experiment.read_candidate(turn)
        return Job.of(experiment.problem, candidate, self.posed, self.asked, turn.folder, fresh)


class PipelineObserver:
    """Is called when something happens. This class ignores everything; override what you need."""

    def on_stage(self, experiment: Experiment, stage: str) -> None:
        """An experiment enters `asking`, a phase of the engine, `waiting` between these, or `done`. Any thread may
        call this."""

    def on_answer(self, experiment: Experiment, turn: Turn, facts: dict[str, Any]) -> None:
        pass

    def on_record(self, experiment: Experiment, turn: Turn, record: Record) -> None:
        pass


@dataclass
class PipelineSummary:
    """What a pipeline has achieved."""

    answered: int = 0
    """Answers that this process asked for."""
    failed: dict[Path, str] = field(default_factory=dict)
    stopped: str | None = None
    """Why no more answers are asked for; None while they are."""


class Pipeline:
    """Takes every experiment through its remaining stages."""

    def __init__(
        self,
        author: Author,
        *,
        concurrency: int = 8,
        judging: Judging | None = None,
        observer: PipelineObserver | None = None,
    ):
        self.author, self.judging, self.observer = author, judging, observer or PipelineObserver()
        self.summary = PipelineSummary()
        self._slots = asyncio.Semaphore(concurrency)

    async def run(self, experiments: Sequence[Experiment]) -> PipelineSummary:
        """Complete all experiments. Raises UsageError when no request can succeed."""
        try:
            async with asyncio.TaskGroup() as group:
                for experiment in experiments:
                    group.create_task(self._complete(experiment))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return self.summary

    async def _complete(self, experiment: Experiment) -> None:
        """Wait until this or another process has completed the experiment, or cannot go on."""
        while not await self._advance(experiment):
            await asyncio.sleep(_POLL_S)
        if self._find_next(experiment)[0] is Stage.NOTHING:
            self.observer.on_stage(experiment, "done")

    async def _advance(self, experiment: Experiment) -> bool:
        """Go through the stages as far as possible; return False where another process works on the experiment."""
        with ExitStack() as held:
            ours = False
            while True:
                async with self._slots:
                    # Claimed no earlier, so that another process may take what waits for a slot here.
                    ours = ours or held.enter_context(experiment.place.claim())
                    if not ours:
                        return self.summary.stopped is not None
                    asked = await self._ask(experiment)
                self.observer.on_stage(experiment, "waiting")
                judged = asked and await self._judge(experiment)
                experiment.keep_best()
                if not judged or self._find_next(experiment)[0] is Stage.NOTHING:
                    return True

    def _find_next(self, experiment: Experiment) -> tuple[Stage, Turn]:
        return experiment.find_next(judged=self.judging is not None)

    async def _ask(self, experiment: Experiment) -> bool:
        """Ask for the next answer if it is missing; return whether there is one."""
        stage, turn = self._find_next(experiment)
        if stage is not Stage.ASK:
            return True
        if self.summary.stopped:
            return False
        self.observer.on_stage(experiment, "asking")
        prompt = experiment.make_prompt(turn)
        try:
            self._store(experiment, turn, prompt, await self.author.write(experiment, turn, prompt))
            return True
        except BudgetSpent as reason:
            self.summary.stopped = str(reason)
        except AskFailed as error:
            self._note_failure(turn, str(error))
        return False

    def _note_failure(self, turn: Turn, why: str) -> None:
        self.summary.failed[turn.folder] = why
        if len(self.summary.failed) >= _MAX_FAILURES and not self.summary.answered:
            self.summary.stopped = f"the first {len(self.summary.failed)} requests failed, the last with {why}"

    def _store(self, experiment: Experiment, turn: Turn, prompt: str, written: WrittenAnswer) -> None:
        which = {"problem": experiment.place.problem, "number": experiment.place.number}
        facts = which | ({"turn": turn.number} if experiment.method.feedback else {}) | written.facts
        facts |= {
            "asked": experiment.identify_request(prompt),
            "candidate": None if written.candidate is None else compute_digest(written.candidate),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        turn.write(prompt, written.response, written.candidate, facts)
        self.summary.answered += 1
        self.observer.on_answer(experiment, turn, facts)

    async def _judge(self, experiment: Experiment) -> bool:
        """Have the next candidate judged; return whether there is a verdict: where the machine fails, there is none."""
        stage, turn = self._find_next(experiment)
        if self.judging is None or stage is not Stage.JUDGE:
            return True

        def on_phase(phase: Phase) -> None:
            self.observer.on_stage(experiment, phase)

        job = self.judging.make_job(experiment, turn)
        record = await asyncio.wrap_future(self.judging.engine.submit(job, on_phase))
        self.observer.on_record(experiment, turn, record)
        return record.verdict is not Verdict.ENVIRONMENT
