"""Attempts to cheat: candidates whose header says what they try, and what the judge must say to it.

row: 5                            the row of docs/threat-model.md
tries: keeps results by address   in a few words
expect: WRONG values              verdict and check; alternatives are divided by |
unscreened: WRONG values          the same, when the static screen is left out
warns: keyed-by-address           what the screen must remark
problem, nproc, dtype, track      how it is posed: 1_allreduce, 2, float32, any unless said otherwise
timed: yes                        time it too
platform: gpu                     where it can be staged: cpu, gpu; anywhere unless said otherwise
"""

import ast
import platform as system
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.platforms import Platform
from pkb.problems.suite import load_problem
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor, Track, find_track

_TRIALS = 2
# Few calls: the work of attempts takes 40 ms, to show beyond what the judge's clock allows for on a CPU.
_RIGOR = Rigor("redteam", 4, 2.0, calls=16, calls_per_block=4, most_pairs=4, checked_blocks=4)


def limits_on(platform: Platform) -> Limits:
    """Short: some attempts never end. Of memory only on a CPU: a profiler of a GPU's kernels needs more."""
    return Limits(load_s=6.0, trial_s=4.0, memory_bytes=1 << 29 if platform.name == "cpu" else None)


@dataclass(frozen=True)
class Outcome:
    verdict: str
    check: str = ""
    """What decided: a check, a rule of the screen, the type of an exception. Expected empty, any will do."""

    @classmethod
    def parse(cls, text: str) -> "Outcome":
        verdict, _, check = text.strip().partition(" ")
        if verdict not in list(Verdict):
            raise ValueError(f"{verdict!r} is no verdict")
        return cls(verdict, check.strip())

    @classmethod
    def of(cls, record: Record) -> "Outcome":
        if not record.reason.isprintable():
            return cls(record.verdict, "with a reason that can steer a terminal")
        evidence = record.evidence
        decided = evidence.get("rule") if record.verdict is Verdict.REJECTED else evidence.get("check")
        return cls(record.verdict, str(decided or evidence.get("type", "")))

    def meets(self, expected: "Outcome") -> bool:
        return self.verdict == expected.verdict and expected.check in ("", self.check)

    def __str__(self) -> str:
        return f"{self.verdict} {self.check}".strip()


@dataclass(frozen=True)
class Attempt:
    path: Path
    row: str
    tries: str
    expect: tuple[Outcome, ...]
    unscreened: tuple[Outcome, ...] = ()
    warns: tuple[str, ...] = ()
    problem: str = "1_allreduce"
    nproc: int = 2
    dtype: str = "float32"
    track: Track = Track.ANY
    timed: bool = False
    platform: str = "any"
    machine: str = ""

    @classmethod
    def read(cls, path: Path) -> "Attempt":
        try:
            return cls(path, **{key: _READERS.get(key, str)(value) for key, value in _header(path).items()})
        except (SyntaxError, TypeError, ValueError) as error:
            raise UsageError(f"{path}: {error}; src/pkb/tools/redteam.py shows what the header holds") from error

    def expected(self, screened: bool) -> tuple[Outcome, ...]:
        return self.expect if screened else self.unscreened

    def modes(self) -> list[bool]:
        """With the screen; and without, where something is expected of that."""
        return [True, False] if self.unscreened else [True]

    def obstacle(self, platform: Platform) -> str | None:
        """Why it cannot be staged here."""
        if self.machine not in ("", system.machine()):
            return f"is written for {self.machine}"
        here = "cpu" if platform.name == "cpu" else "gpu"
        return None if self.platform in ("any", here) else f"needs a {self.platform.upper()}"


@dataclass(frozen=True)
class Finding:
    """What became of one attempt."""

    attempt: Attempt
    screened: bool
    got: Outcome
    unsaid: tuple[str, ...]
    """Rules that should have remarked something, and did not."""
    reason: str
    seconds: float

    @property
    def caught(self) -> bool:
        expected = self.attempt.expected(self.screened)
        return any(self.got.meets(outcome) for outcome in expected) and not self.unsaid


def attempts(folder: Path, chosen: Sequence[str] = ()) -> list[Attempt]:
    """All in a folder; or those of some rows (5, m3), or whose names match a pattern (05*)."""
    found = [Attempt.read(path) for path in sorted(folder.glob("[0-9m]*.py"))]
    if not found:
        raise UsageError(f"no attempt in {folder}; name the folder redteam of a checkout with --folder")
    if unknown := [pattern for pattern in chosen if not any(_is_meant(a, pattern) for a in found)]:
        raise UsageError(f"no attempt is of row {unknown[0]}, or named like that; rows are 1 to 44 and m1 to m14")
    return [a for a in found if not chosen or any(_is_meant(a, pattern) for pattern in chosen)]


def stage(judge: Judge, attempt: Attempt, screened: bool, run: Path | None = None) -> Finding:
    """Have the judge judge an attempt. Should that break the judge, what it raised is what became of it.

    The record becomes a sample of `run`, if there is one.
    """
    start = time.monotonic()
    setup = judge.pose(attempt.problem, ProblemSettings(nproc=attempt.nproc, dtype=attempt.dtype, trials=_TRIALS))
    rigor = _RIGOR if attempt.timed else None
    unsaid: set[str] = set()
    try:
        candidate = Candidate.read(attempt.path)
        out = run and run / attempt.problem / (attempt.path.stem + ("" if screened else "_unscreened"))
        record = judge.judge(
            setup, candidate, JudgementSettings(track=attempt.track, screen=screened, rigor=rigor), out=out
        )
        got, reason = Outcome.of(record), record.reason
        said = {finding["rule"] for finding in record.warnings}
        unsaid = set(attempt.warns) - said if screened else set()
    except Exception as error:
        got, reason = Outcome("BROKEN", type(error).__name__), f"the judge itself raised {error!r}"
    return Finding(attempt, screened, got, tuple(sorted(unsaid)), reason, time.monotonic() - start)


def honest_kernels(folder: Path) -> list[Path]:
    """Files named <number>_<name>_<backend>.py."""
    found = sorted(folder.glob("[0-9]*_*.py"))
    if not found:
        raise UsageError(f"no kernel in {folder}; name a folder that has some with --kernels, or say --no-kernels")
    return found


def honest(judge: Judge, staged: Sequence[Attempt], kernels: Sequence[Path]) -> Iterator[Record]:
    """Judge what must pass: these kernels, and the references of the problems that attempts were made at."""
    for path in kernels:
        problem = load_problem(re.sub("_[a-z]+$", "", path.stem))
        setup = replace(judge.pose(problem, ProblemSettings(nproc=2, trials=_TRIALS)), limits=Limits())
        yield judge.judge(setup, Candidate.read(path), JudgementSettings(track=Track.SCRATCH))
    for stem in sorted({attempt.problem for attempt in staged}):
        rigor = _RIGOR if any(a.timed for a in staged if a.problem == stem) else None
        setup = replace(judge.pose(stem, ProblemSettings(nproc=2, trials=_TRIALS)), limits=Limits())
        yield judge.judge(setup, Candidate.reference(load_problem(stem)), JudgementSettings(rigor=rigor))


def _header(path: Path) -> dict[str, str]:
    """The lines `key: value` at the beginning of a file's docstring, up to the first empty one."""
    text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    pairs = [line.partition(":") for line in text.split("\n\n")[0].splitlines()]
    known = {field.name for field in fields(Attempt)}
    if strange := [key for key, _, _ in pairs if key not in known]:
        raise ValueError(f"unknown line {strange[0]!r}")
    return {key: value.strip() for key, _, value in pairs}


def _outcomes(text: str) -> tuple[Outcome, ...]:
    return tuple(Outcome.parse(part) for part in text.split("|"))


_READERS: dict[str, Callable[[str], Any]] = {
    "row": str.lower,
    "expect": _outcomes,
    "unscreened": _outcomes,
    "warns": lambda text: tuple(text.split()),
    "nproc": int,
    "track": find_track,
    "timed": lambda text: text == "yes",
}


def _is_meant(attempt: Attempt, pattern: str) -> bool:
    row = re.sub(r"^(m?)0+", r"\1", pattern.lower())
    return attempt.row == row or fnmatchcase(attempt.path.stem, pattern)
