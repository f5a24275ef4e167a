"""What a self-test finds: the outcome of each step, of each check, and the record that can be shared."""

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pkb.base.schema import dump
from pkb.record import Environment, Facts

SELFTEST_SCHEMA = 1
"""The version of the record's form: counted up whenever a field changes its name, its place or its meaning."""


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Judgements are right, but something about this machine should be known or improved."""
    FAILED = "FAILED"
    """Something is wrong with the judge on this machine."""
    NOT_RUN = "not run"


@dataclass(frozen=True)
class StepOutcome:
    """One step of a check: mostly one judgement."""

    name: str
    status: Status
    text: str
    """What was seen, in one line."""
    seconds: float = 0.0
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class CheckOutcome:
    """One check: the worst of its steps, and what to do about it."""

    name: str
    shows: str
    """What a success shows."""
    status: Status
    text: str
    advice: str
    """What to do next; empty where all is fine."""
    seconds: float
    steps: list[StepOutcome]

    @property
    def is_partial(self) -> bool:
        """Whether steps were not run."""
        return any(step.status is Status.NOT_RUN for step in self.steps)


@dataclass(frozen=True)
class SelftestRecord:
    """A self-test of one machine, without names of users and hosts and without paths."""

    status: Status
    """FAILED if a check failed, or if none could be run; otherwise ok, also with warnings."""
    platform: str
    ranks: int
    """The most ranks of a judgement."""
    minutes: float
    """The time that was allowed."""
    seconds: float
    """The time that was taken."""
    interrupted: bool
    environment: Environment
    checks: list[CheckOutcome]
    when: str
    selftest: int = SELFTEST_SCHEMA
    """The version of this form."""

    def to_fields(self) -> dict[str, Any]:
        return dump(self)

    def to_json(self) -> str:
        return json.dumps(self.to_fields(), indent=1)

    def list_checks(self, status: Status) -> list[str]:
        return [check.name for check in self.checks if check.status is status]


def find_worst(statuses: list[Status]) -> Status:
    """Return the worst of the steps that were run; NOT_RUN if none was."""
    worst = (status for status in (Status.FAILED, Status.WARNING, Status.OK) if status in statuses)
    return next(worst, Status.NOT_RUN)
