"""Samples for many problems: asked for side by side, written as they arrive, judged meanwhile, never asked twice."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pkb.candidate import Candidate
from pkb.engine import Engine, Job
from pkb.errors import UsageError
from pkb.generate.budget import Budget, BudgetSpent
from pkb.generate.extract import extract
from pkb.generate.model import Answer, AskFailed, Model, Settings
from pkb.generate.prompt import Wanted, prompt_for
from pkb.generate.store import Place, digest
from pkb.problem import Problem
from pkb.record import Record

_POLL_S = 0.2
"""How often we look whether another process has finished a sample."""
_HOPELESS = 8
"""So many failures, and no answer: the rest is not tried."""


@dataclass(frozen=True)
class Task:
    """One sample that is wanted."""

    place: Place
    problem: Problem
    prompt: str
    wanted: Wanted
    settings: Settings

    @property
    def asked(self) -> dict[str, Any]:
        """What identifies the request: a sample that says otherwise is not this one."""
        kernel = {"backend": self.wanted.backend, "precision": self.wanted.precision, "track": self.wanted.track}
        return asdict(self.settings) | kernel | {"prompt_sha256": digest(self.prompt)}


@dataclass(frozen=True)
class Judging:
    """How samples are judged as they arrive."""

    engine: Engine
    posed: dict[str, Any]
    judged: dict[str, Any]


@dataclass
class Tally:
    """What came of it."""

    answered: int = 0
    """By this process."""
    failed: dict[Path, str] = field(default_factory=dict)
    stopped: str | None = None
    """Why no more is asked for."""


def plan(problems: Sequence[Problem], wanted: Wanted, settings: Settings, samples: int, run: Path) -> list[Task]:
    """The samples of a run, the first of every problem before the second of any. Raises UsageError where a sample that
    is there was asked for otherwise."""
    prompts = {problem.stem: prompt_for(problem, wanted) for problem in problems}
    tasks = [
        Task(Place(run, problem.stem, settings.model, number), problem, prompts[problem.stem], wanted, settings)
        for number in range(1, samples + 1)
        for problem in problems
    ]
    for task in tasks:
        _refuse_another(task)
    return tasks


def _refuse_another(task: Task) -> None:
    there = task.place.facts()
    if there and there["asked"] != task.asked:
        differing = ", ".join(key for key, value in task.asked.items() if there["asked"].get(key) != value)
        raise UsageError(f"{task.place.folder} was asked for otherwise ({differing} differ); choose another --run")


class Generation:
    """Asks for what is missing of a plan."""

    def __init__(
        self,
        model: Model,
        budget: Budget,
        *,
        concurrency: int = 8,
        judging: Judging | None = None,
        told: Callable[[Task, dict[str, Any] | Record], None] = lambda task, news: None,
    ):
        self.model, self.budget, self.judging, self.told = model, budget, judging, told
        self.tally = Tally()
        self._slots = asyncio.Semaphore(concurrency)

    async def run(self, tasks: Sequence[Task]) -> Tally:
        """Raises UsageError when no request can succeed."""
        try:
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(self._settle(task))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return self.tally

    async def _settle(self, task: Task) -> None:
        """See to it that a sample is there, and judged if that is wanted, whichever process does it."""
        while not self._settled(task) and not await self._attempt(task):
            await asyncio.sleep(_POLL_S)

    def _settled(self, task: Task) -> bool:
        there = task.place.facts()
        if not there or self.judging is None:
            return there is not None
        return there["candidate"] is None or task.place.record.is_file()

    async def _attempt(self, task: Task) -> bool:
        """False where another process is at it."""
        with ExitStack() as held:
            async with self._slots:
                if self.tally.stopped and not task.place.facts():
                    return True
                if not held.enter_context(task.place.claimed()):
                    return False
                if not task.place.facts():
                    await self._ask(task)
            if self.judging and task.place.facts() and not self._settled(task):
                await self._judge(task, self.judging)
        return True

    async def _ask(self, task: Task) -> None:
        most = self.model.most(task.prompt) if self.budget.limit is not None else 0.0
        try:
            async with self.budget.reserved(most):
                answer = await self.model.ask([{"role": "user", "content": task.prompt}], task.place.number - 1)
                self._keep(task, answer)
        except BudgetSpent as reason:
            self.tally.stopped = str(reason)
        except AskFailed as error:
            self.tally.failed[task.place.folder] = str(error)
            if len(self.tally.failed) >= _HOPELESS and not self.tally.answered:
                self.tally.stopped = f"the first {len(self.tally.failed)} requests failed, the last with {error}"

    def _keep(self, task: Task, answer: Answer) -> None:
        found = extract(answer.text, answer.finish_reason)
        facts = asdict(answer) | {
            "asked": task.asked,
            "candidate": None if found.source is None else digest(found.source),
            "notes": found.notes,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        task.place.write(task.prompt, facts.pop("text"), found.source, facts)
        self.tally.answered += 1
        self.told(task, facts)

    async def _judge(self, task: Task, judging: Judging) -> None:
        source = task.place.candidate.read_bytes()
        candidate = Candidate.of(source, task.place.name, task.wanted.backend)
        job = Job(task.problem, candidate, judging.posed, judging.judged, task.place.folder)
        record = await asyncio.wrap_future(judging.engine.submit(job))
        self.told(task, record)
