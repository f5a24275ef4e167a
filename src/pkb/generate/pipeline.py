"""Many experiments at once: asked for side by side, built and judged meanwhile, resumed from their files."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pkb.engine import Engine, Job, Phase
from pkb.generate.author import Author, Written
from pkb.generate.budget import BudgetSpent
from pkb.generate.experiment import Experiment, Stage
from pkb.generate.model import AskFailed
from pkb.generate.sample_files import Turn, digest
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, ProblemSettings

_POLL_S = 0.2
"""How often we look whether another process has finished a sample."""
_HOPELESS = 8
"""So many failures, and no answer: the rest is not tried."""


@dataclass(frozen=True)
class Judging:
    """How samples are judged as they arrive."""

    engine: Engine
    posed: ProblemSettings
    asked: JudgementSettings

    def job(self, experiment: Experiment, turn: Turn) -> Job:
        # What a model was told of one turn must not help it in the next.
        fresh = turn.number > 1 or bool(experiment.method.facts)
        candidate = experiment.candidate(turn)
        return Job.of(experiment.problem, candidate, self.posed, self.asked, turn.folder, fresh)


class Watch:
    """Is told what happens. This one listens to nothing."""

    def moved(self, experiment: Experiment, to: str) -> None:
        """To `asking`, a phase of the engine's, `waiting` between them, or `done`. From any thread."""

    def answered(self, experiment: Experiment, turn: Turn, facts: dict[str, Any]) -> None:
        pass

    def judged(self, experiment: Experiment, turn: Turn, record: Record) -> None:
        pass


@dataclass
class Tally:
    """What came of it."""

    answered: int = 0
    """By this process."""
    failed: dict[Path, str] = field(default_factory=dict)
    stopped: str | None = None
    """Why no more is asked for."""


class Pipeline:
    """Takes every experiment as far as it goes."""

    def __init__(
        self,
        author: Author,
        *,
        concurrency: int = 8,
        judging: Judging | None = None,
        watch: Watch | None = None,
    ):
        self.author, self.judging, self.watch = author, judging, watch or Watch()
        self.tally = Tally()
        self._slots = asyncio.Semaphore(concurrency)

    async def run(self, experiments: Sequence[Experiment]) -> Tally:
        """Raises UsageError when no request can succeed."""
        try:
            async with asyncio.TaskGroup() as group:
                for experiment in experiments:
                    group.create_task(self._settle(experiment))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return self.tally

    async def _settle(self, experiment: Experiment) -> None:
        """Whichever process does it."""
        while not await self._attempt(experiment):
            await asyncio.sleep(_POLL_S)
        if self._next(experiment)[0] is Stage.NOTHING:
            self.watch.moved(experiment, "done")

    async def _attempt(self, experiment: Experiment) -> bool:
        """One stage after the other, as far as it goes; False where another process is at it."""
        with ExitStack() as held:
            ours = False
            while True:
                async with self._slots:
                    # Claimed no earlier: what waits for its place here, another process may take.
                    ours = ours or held.enter_context(experiment.place.claimed())
                    if not ours:
                        return self.tally.stopped is not None
                    asked = await self._ask(experiment)
                self.watch.moved(experiment, "waiting")
                judged = asked and await self._judge(experiment)
                experiment.keep_best()
                if not judged or self._next(experiment)[0] is Stage.NOTHING:
                    return True

    def _next(self, experiment: Experiment) -> tuple[Stage, Turn]:
        return experiment.next(judged=self.judging is not None)

    async def _ask(self, experiment: Experiment) -> bool:
        """Whether there is an answer, asked for now or before."""
        stage, turn = self._next(experiment)
        if stage is not Stage.ASK:
            return True
        if self.tally.stopped:
            return False
        self.watch.moved(experiment, "asking")
        prompt = experiment.prompt_of(turn)
        try:
            self._keep(experiment, turn, prompt, await self.author.write(experiment, turn, prompt))
            return True
        except BudgetSpent as reason:
            self.tally.stopped = str(reason)
        except AskFailed as error:
            self._note_failure(turn, str(error))
        return False

    def _note_failure(self, turn: Turn, why: str) -> None:
        self.tally.failed[turn.folder] = why
        if len(self.tally.failed) >= _HOPELESS and not self.tally.answered:
            self.tally.stopped = f"the first {len(self.tally.failed)} requests failed, the last with {why}"

    def _keep(self, experiment: Experiment, turn: Turn, prompt: str, written: Written) -> None:
        which = {"problem": experiment.place.problem, "number": experiment.place.number}
        facts = which | ({"turn": turn.number} if experiment.method.feedback else {}) | written.facts
        facts |= {
            "asked": experiment.asked(prompt),
            "candidate": None if written.candidate is None else digest(written.candidate),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        turn.write(prompt, written.response, written.candidate, facts)
        self.tally.answered += 1
        self.watch.answered(experiment, turn, facts)

    async def _judge(self, experiment: Experiment) -> bool:
        """Whether there is a verdict on the candidate: the machine may fail, and nothing follows from that."""
        stage, turn = self._next(experiment)
        if self.judging is None or stage is not Stage.JUDGE:
            return True

        def told(phase: Phase) -> None:
            self.watch.moved(experiment, phase)

        record = await asyncio.wrap_future(self.judging.engine.submit(self.judging.job(experiment, turn), told))
        self.watch.judged(experiment, turn, record)
        return record.verdict is not Verdict.ENVIRONMENT
