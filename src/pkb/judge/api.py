"""`pkb.evaluate`: one call for people who have a kernel and a question."""

import atexit
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.record import Record
from pkb.settings import JudgementSettings, ProblemSettings, Tolerance, find_rigor, find_track


def evaluate(
    problem: Problem | str | int,
    source_or_path: str | Path,
    *,
    nproc: int | None = None,
    size: str | Size | None = None,
    dtype: str = "float32",
    trials: int | None = None,
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
    asked = JudgementSettings(
        track=find_track(track),
        tolerance=tolerance,
        rigor=find_rigor(rigor) if measure_perf else None,
        baselines=tuple(baselines),
    )
    setup = judge.pose(problem, ProblemSettings(nproc, size, dtype, trials, inputs=inputs))
    return judge.judge(setup, _candidate(source_or_path, backend), asked, out=Path(out) if out else None)


def _candidate(source_or_path: Any, backend: str | None) -> Candidate:
    if isinstance(source_or_path, Path) or "\n" not in source_or_path:
        return Candidate.read(Path(source_or_path), backend)
    return Candidate.of(source_or_path.encode(), backend=backend)


@cache
def _resident(platform: str, sandbox: str) -> Judge:
    judge = Judge(platform, sandbox=sandbox)
    atexit.register(judge.close)
    return judge
