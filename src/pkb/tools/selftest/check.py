"""What a check of the self-test is: a name, what it shows, and the steps that it takes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from pkb.tools.selftest.bench import Bench
from pkb.tools.selftest.outcome import CheckOutcome, Status, StepOutcome, find_worst

_MOST_NAMED = 3
"""The most steps that a row names."""


class Round(IntEnum):
    """When a step is taken. Where time is short, what comes later is not run."""

    FIRST = 0
    """The steps without which a check shows nothing."""
    MORE = 1
    LAST = 2
    """What only looks at the judgements before it: it takes no time, and is run in any case."""


@dataclass(frozen=True)
class StepResult:
    status: Status
    text: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    name: str
    take: Callable[[Bench], StepResult]
    """Raises UsageError where the step cannot be taken on this machine, which is no failure."""
    round: Round = Round.MORE


class SelftestCheck(ABC):
    """One check. Each is an object in a file of its own; `checks/__init__.py` lists them."""

    name: str
    shows: str
    """What a success shows, in one sentence."""
    advice: str
    """What to do when the check fails or warns."""

    @abstractmethod
    def plan(self, bench: Bench) -> Sequence[Step]:
        """Return the steps on this machine, the most useful ones first."""

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        """Return what the row says when all steps that were run are fine."""
        return f"{len(done)} fine"

    def conclude(self, steps: list[StepOutcome]) -> CheckOutcome:
        status = find_worst([step.status for step in steps])
        advice = self.advice if status in (Status.FAILED, Status.WARNING) else ""
        seconds = round(sum(step.seconds for step in steps), 2)
        return CheckOutcome(self.name, self.shows, status, self._describe(status, steps), advice, seconds, steps)

    def _describe(self, status: Status, steps: list[StepOutcome]) -> str:
        missing = [step for step in steps if step.status is Status.NOT_RUN]
        if status is Status.NOT_RUN:
            return missing[0].text if missing else "nothing of it applies to this platform"
        seen = [step for step in steps if step.status is status]
        done = [step for step in steps if step.status is not Status.NOT_RUN]
        told = self.summarize(done) if status is Status.OK else _list_some([f"{s.name}: {s.text}" for s in seen], "; ")
        return f"{told}; not run: {_list_some([step.name for step in missing], ', ')}" if missing else told


def _list_some(texts: list[str], separator: str) -> str:
    more = [f"{len(texts) - _MOST_NAMED} more"] if len(texts) > _MOST_NAMED else []
    return separator.join([*texts[:_MOST_NAMED], *more])
