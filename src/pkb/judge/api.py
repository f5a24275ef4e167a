"""`pkb.evaluate`: one call for people who have a kernel and a question."""

import atexit
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pkb.candidate import Candidate
from pkb.judge.compare import Tolerance
from pkb.judge.judge import Judge
from pkb.judge.rigor import rigor_named
from pkb.problem import Problem, Size
from pkb.record import Record


def evaluate(
    problem: Problem | str | int,
    source_or_path: str | Path,
    *,
    nproc: int | None = None,
    size: str | Size | None = None,
    dtype: str = "float32",
    trials: int = 5,
    inputs: str = "sound",
    backend: str | None = None,
    track: str = "any",
    tolerance: Tolerance | None = None,
    measure_perf: bool = False,
    rigor: str = "quick",
    baselines: Sequence[str] = (),
    platform: str = "auto",
    sandbox: str = "auto",
    out: str | Path | None = None,
) -> Record:
    """Judge a candidate: a path to its file, or its source.

    One judge per platform and sandbox serves all calls of this process, so that the second is quick; it ends with
    the process.
    """
    judge = _resident(platform, sandbox)
    setup = judge.pose(problem, nproc=nproc, size=size, dtype=dtype, trials=trials, inputs=inputs)
    candidate = _candidate(source_or_path, backend)
    folder = Path(out) if out else None
    chosen = rigor_named(rigor) if measure_perf else None
    asked: dict[str, Any] = {"tolerance": tolerance, "track": track, "rigor": chosen, "baselines": baselines}
    return judge.judge(setup, candidate, out=folder, **asked)


def _candidate(source_or_path: Any, backend: str | None) -> Candidate:
    if isinstance(source_or_path, Path) or "\n" not in source_or_path:
        return Candidate.read(Path(source_or_path), backend)
    return Candidate.of(source_or_path.encode(), backend=backend)


@cache
def _resident(platform: str, sandbox: str) -> Judge:
    judge = Judge(platform, sandbox=sandbox)
    atexit.register(judge.close)
    return judge
