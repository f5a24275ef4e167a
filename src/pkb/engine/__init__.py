"""Where judgements are made: submit a job, get its record later.

One module each, holding ENGINE, which is named by its module; adding one is adding its file (docs/adding-an-engine.md).
"""

import importlib
import json
import pkgutil
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pkb.base.schema import dump, parse
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.problems.problem import Problem
from pkb.problems.suite import find_suite, name_suite
from pkb.record import Record
from pkb.settings import JudgementSettings, ProblemSettings


class Phase(StrEnum):
    """How far a job has come."""

    BUILDING = "building"
    QUEUED = "queued"
    JUDGING = "judging"


OnPhase = Callable[[Phase], None]
"""Called when a job enters its next phase, from any thread."""


@dataclass(frozen=True)
class Job:
    """One candidate to be judged on one problem: plain data, so that an engine may send it to another machine."""

    suite: str
    """A shipped suite by name, or the folder of another."""
    problem: str
    """The problem's stem, such as 13_gemm_allreduce."""
    source: str
    """The candidate's file; bytes that are not UTF-8 are escaped as surrogates."""
    name: str = "candidate"
    backend: str | None = None
    """None recognises the backend by the source."""
    posed: ProblemSettings = field(default_factory=ProblemSettings)
    asked: JudgementSettings = field(default_factory=JudgementSettings)
    out: str | None = None
    """The sample's folder, where the record is written; None writes nothing."""
    fresh: bool = False
    """Whether its inputs come from seeds that no earlier judgement has used."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        candidate: Candidate,
        posed: ProblemSettings | None = None,
        asked: JudgementSettings | None = None,
        out: Path | None = None,
        fresh: bool = False,
    ) -> "Job":
        """Describe the judgement of a candidate that is at hand."""
        source = candidate.source.decode(errors="surrogateescape")
        return cls(
            name_suite(problem),
            problem.stem,
            source,
            candidate.name,
            candidate.backend.name,
            posed or ProblemSettings(),
            asked or JudgementSettings(),
            str(out) if out else None,
            fresh,
        )

    def load_problem(self) -> Problem:
        return find_suite(self.suite).load(self.problem)

    def candidate(self) -> Candidate:
        return Candidate.of(self.source.encode(errors="surrogateescape"), self.name, self.backend)

    def to_json(self) -> str:
        return json.dumps(dump(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Raises ValueError when the text is no job."""
        return parse(cls, json.loads(text))


@dataclass(frozen=True)
class Site:
    """Where and how an engine judges."""

    platform: str = "auto"
    sandbox: str = "auto"
    builders: int = 2
    """Candidates that are compiled at the same time, before their judgement."""


class Engine(Protocol):
    def submit(self, job: Job, on_phase: OnPhase = lambda phase: None) -> Future[Record]:
        """Return at once; the future has the record, or the exception of a machine that failed."""

    def close(self) -> None:
        """Drop jobs that have not begun, end those that have, without a record; no rank is left running."""


def list_engines() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def make_engine(name: str, site: Site) -> Engine:
    """Return a new engine. Only its own module is imported: others may need what is not installed."""
    if name not in list_engines():
        raise UsageError(f"unknown engine {name!r}; choose from {', '.join(list_engines())}")
    return importlib.import_module(f"{__name__}.{name}").ENGINE(site)
