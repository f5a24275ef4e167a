"""Where judgements are made: hand in a job, get its record later.

One module each, holding ENGINE, which is named by its module; adding one is adding its file.
"""

import importlib
import pkgutil
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.problem import Problem
from pkb.record import Record


class Phase(StrEnum):
    """How far a job has come."""

    BUILDING = "building"
    QUEUED = "queued"
    JUDGING = "judging"


Told = Callable[[Phase], None]
"""Called when a job comes to its next phase, from any thread."""


@dataclass(frozen=True)
class Job:
    """One candidate to be judged on one problem."""

    problem: Problem
    candidate: Candidate
    posed: dict[str, Any] = field(default_factory=dict)
    """Arguments of Judge.pose: nproc, size, dtype, trials."""
    judged: dict[str, Any] = field(default_factory=dict)
    """Arguments of Judge.judge: track, tolerance, rigor, profile."""
    out: Path | None = None
    fresh: bool = False
    """Whether its inputs come from seeds that no earlier judgement has used."""


@dataclass(frozen=True)
class Site:
    """What an engine is told about where and how it judges."""

    platform: str = "auto"
    sandbox: str = "auto"
    builders: int = 2
    """Candidates that are compiled side by side, ahead of their judgement."""


class Engine(Protocol):
    def submit(self, job: Job, told: Told = lambda phase: None) -> Future[Record]:
        """Returns at once."""

    def close(self) -> None:
        """Drop what has not begun, end what has, without a record; no rank is left running."""


def engines() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def engine_named(name: str, site: Site) -> Engine:
    """Only the named engine's module is imported: others may need what is not installed."""
    if name not in engines():
        raise UsageError(f"unknown engine {name!r}; choose from {', '.join(engines())}")
    return importlib.import_module(f"{__name__}.{name}").ENGINE(site)
