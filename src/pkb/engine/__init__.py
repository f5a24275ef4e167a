"""Where judgements are made: hand in a job, get its record later."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pkb.candidate import Candidate
from pkb.problem import Problem
from pkb.record import Record


@dataclass(frozen=True)
class Job:
    """One candidate to be judged on one problem."""

    problem: Problem
    candidate: Candidate
    posed: dict[str, Any] = field(default_factory=dict)
    """Arguments of Judge.pose: nproc, size, dtype, trials."""
    judged: dict[str, Any] = field(default_factory=dict)
    """Arguments of Judge.judge: track, tolerance, rigor."""
    out: Path | None = None


class Engine(Protocol):
    def submit(self, job: Job) -> Future[Record]:
        """Returns at once."""

    def close(self) -> None:
        """Drop what has not begun, end what has, without a record; no rank is left running."""
