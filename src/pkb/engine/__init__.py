"""Engines make judgements: submit a job, get its record later.

An engine is one module with an ENGINE, here or in a folder of PKB_PLUGINS; the module's name is the engine's
(docs/adding-an-engine.md).
"""

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pkb.base.plugins import list_modules, list_plugin_folders, load_object
from pkb.base.schema import dump, parse
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.problems.problem import Problem
from pkb.problems.suite import find_suite, name_suite
from pkb.record import Record
from pkb.settings import JudgementSettings, ProblemSettings

__path__ += list_plugin_folders("engines")


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
    """Whether the inputs must come from seeds that no earlier judgement has used."""

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

    def make_candidate(self) -> Candidate:
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
    """The number of candidates that are compiled at the same time, before their judgement."""


class Engine(Protocol):
    """A module's ENGINE is called with a Site and returns an Engine."""

    def submit(self, job: Job, on_phase: OnPhase = lambda phase: None) -> Future[Record]:
        """Return at once. The future gets the record, or an exception where the job could not be judged."""

    def close(self) -> None:
        """Drop the jobs that have not begun, end the others without a record, and leave no process running."""


def list_engines() -> list[str]:
    """Return the names of all engines, without importing them."""
    return list_modules(__path__)


def make_engine(name: str, site: Site) -> Engine:
    """Return a new engine. Only its own module is imported: other engines may need packages that are missing."""
    if name not in list_engines():
        raise UsageError(f"unknown engine {name!r}; choose from {', '.join(list_engines())}")
    engine: Engine = load_object(f"{__name__}.{name}", "ENGINE")(site)
    return engine
