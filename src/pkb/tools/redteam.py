"""Stage attempts to cheat: candidates whose header says what they try, and which verdict the judge must give.

row: 5                            the row of docs/redteam.md
tries: keeps results by address   in a few words
expect: WRONG values              verdict and check; | separates alternatives
unscreened: WRONG values          the same, without the static screen
warns: keys-by-address           rules of the screen that must warn
problem, nproc, dtype, track      how the problem is posed; defaults are 1_allreduce, 2, float32, any
timed: yes                        time the attempt too
platform: gpu                     where the attempt can be staged: cpu or gpu; default is any
machine: x86_64                   the processor that the attempt is written for; default is any

The folder `honest` beside the attempts holds candidates that only look suspicious; their row is `honest`, and they must
be CORRECT.
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

from pkb.base.printable import is_clean
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import Setup
from pkb.platforms import Platform
from pkb.problems.problem import Problem
from pkb.problems.suite import load_problem
from pkb.record import Pace, Record, Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor, Track, find_track

_TRIALS = 2
# Few calls: an attempt works for 40 ms per call, so that the work shows in the judge's clock on a CPU. At least four in
# a block, whatever is drawn: of fewer, a block's time is their mean, and one long call would be no cheat.
_RIGOR = Rigor("redteam", 4, 2.0, least_pairs=4, calls_per_block=5, most_pairs=4, checked_blocks=6)


def choose_limits(platform: Platform) -> Limits:
    """Return short deadlines, since some attempts never end; memory is limited unless a kernel profiler needs it."""
    return Limits(load_s=6.0, trial_s=4.0, memory_bytes=None if platform.has_kernel_profiler else 1 << 29)


@dataclass(frozen=True)
class Outcome:
    verdict: str
    check: str = ""
    """What decided: a check, a rule of the screen, or the type of an exception; of a timed candidate that is right, the
    pace. In a header, empty accepts any."""

    @classmethod
    def parse(cls, text: str) -> "Outcome":
        verdict, _, check = text.strip().partition(" ")
        if verdict not in list(Verdict):
            raise ValueError(f"{verdict!r} is no verdict")
        return cls(verdict, check.strip())

    @classmethod
    def from_record(cls, record: Record) -> "Outcome":
        if not _is_printable(record.to_fields()):
            return cls(record.verdict, "with text that can steer a terminal")
        if record.verdict is Verdict.CORRECT and record.pace is not Pace.UNTIMED:
            return cls(record.verdict, record.pace)
        evidence = record.evidence
        decided = evidence.rule if record.verdict is Verdict.REJECTED else evidence.check
        return cls(record.verdict, decided or evidence.type)

    def meets(self, expected: "Outcome") -> bool:
        return self.verdict == expected.verdict and expected.check in ("", self.check)

    def __str__(self) -> str:
        return f"{self.verdict} {self.check}".strip()


@dataclass(frozen=True)
class Attempt:
    """A candidate that tries to cheat, and what its header says."""

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
            return cls(path, **{key: _PARSERS.get(key, str)(value) for key, value in _read_header(path).items()})
        except (SyntaxError, TypeError, ValueError) as error:
            raise UsageError(f"{path}: {error}; src/pkb/tools/redteam.py shows what the header holds") from error

    def find_expected(self, screened: bool) -> tuple[Outcome, ...]:
        return self.expect if screened else self.unscreened

    def list_modes(self) -> list[bool]:
        """Return whether to stage the attempt with the screen, and without it where the header has `unscreened`."""
        return [True, False] if self.unscreened else [True]

    def find_obstacle(self, platform: Platform) -> str | None:
        """Return why the attempt cannot be staged on this machine and platform; None if it can."""
        if self.machine not in ("", system.machine()):
            return f"is written for {self.machine}"
        here = "gpu" if platform.device_type == "cuda" else "cpu"
        return None if self.platform in ("any", here) else f"needs a {self.platform.upper()}"

    def pose(self, judge: Judge) -> Setup:
        return judge.pose(self.problem, ProblemSettings(nproc=self.nproc, dtype=self.dtype, trials=_TRIALS))


def _is_printable(value: Any) -> bool:
    """Return whether every text of a record is one clean line; that of a log has several."""
    if isinstance(value, str):
        return is_clean(value)
    if isinstance(value, dict):
        lines = {key: one.split("\n") if key == "log" and isinstance(one, str) else one for key, one in value.items()}
        return all(map(_is_printable, (*lines, *lines.values())))
    return all(map(_is_printable, value)) if isinstance(value, list | tuple) else True


def read_attempts(folder: Path, chosen: Sequence[str] = ()) -> list[Attempt]:
    """Read the attempts in a folder: all, or those of chosen rows (5, m3) or with chosen names (05*)."""
    found = [Attempt.read(path) for path in sorted(folder.glob("[0-9m]*.py"))]
    if not found:
        raise UsageError(f"no attempt in {folder}; name the folder redteam of a checkout with --folder")
    if unknown := [pattern for pattern in chosen if not any(_matches(a, pattern) for a in found)]:
        raise UsageError(f"no attempt has the row or the name {unknown[0]}; docs/redteam.md lists them")
    return [a for a in found if not chosen or any(_matches(a, pattern) for pattern in chosen)]


def _matches(attempt: Attempt, pattern: str) -> bool:
    row = re.sub(r"^(m?)0+", r"\1", pattern.lower())
    return attempt.row == row or fnmatchcase(attempt.path.stem, pattern)


@dataclass(frozen=True)
class StagedAttempt:
    """One attempt, and what the judge made of it."""

    attempt: Attempt
    screened: bool
    outcome: Outcome
    missing_warnings: tuple[str, ...]
    """Rules of the screen that should have warned, and did not."""
    reason: str
    seconds: float

    @property
    def is_caught(self) -> bool:
        expected = self.attempt.find_expected(self.screened)
        return any(self.outcome.meets(one) for one in expected) and not self.missing_warnings


def stage(
    judge: Judge,
    attempt: Attempt,
    screened: bool,
    run: Path | None = None,
    rigor: Rigor | None = None,
    limits: Limits | None = None,
) -> StagedAttempt:
    """Judge an attempt, and store the record as a sample of `run`.

    Without a rigor, few calls are timed; without limits, those of the judge hold.
    """
    start, setup = time.monotonic(), replace(attempt.pose(judge), limits=limits or judge.limits)
    chosen = (rigor or _RIGOR) if attempt.timed else None
    settings = JudgementSettings(track=attempt.track, screen=screened, rigor=chosen)
    out = run and run / attempt.problem / (attempt.path.stem + ("" if screened else "_unscreened"))
    record = judge.judge(setup, Candidate.read(attempt.path), settings, out=out)
    missing = set(attempt.warns) - {finding.rule for finding in record.warnings} if screened else set()
    outcome, seconds = Outcome.from_record(record), time.monotonic() - start
    return StagedAttempt(attempt, screened, outcome, tuple(sorted(missing)), record.reason, seconds)


def list_honest_kernels(folder: Path) -> list[Path]:
    """Return the files named <number>_<name>_<backend>.py in a folder."""
    found = sorted(folder.glob("[0-9]*_*.py"))
    if not found:
        raise UsageError(f"no kernel in {folder}; name a folder that has some with --kernels, or say --no-kernels")
    return found


def read_honest_examples(folder: Path) -> list[Attempt]:
    """Read the candidates in the folder `honest` of a folder of attempts: unusual, but right, so they must pass."""
    return [Attempt.read(path) for path in sorted((folder / "honest").glob("*.py"))]


def judge_honest(
    judge: Judge, staged: Sequence[Attempt], kernels: Sequence[Path], examples: Sequence[Attempt] = ()
) -> Iterator[Record]:
    """Judge what must pass: honest examples, these kernels, and the references of the staged attempts' problems."""
    for example in examples:
        if not example.find_obstacle(judge.platform):
            yield judge_honest_example(judge, example)
    for path in kernels:
        problem = load_problem(re.sub("_[a-z]+$", "", path.stem))
        yield judge.judge(_pose_honest(judge, problem), Candidate.read(path), JudgementSettings(track=Track.SCRATCH))
    for stem, nproc in sorted({(attempt.problem, attempt.nproc) for attempt in staged}):
        problem = load_problem(stem)
        rigor = _RIGOR if any(a.timed for a in staged if (a.problem, a.nproc) == (stem, nproc)) else None
        setup = _pose_honest(judge, problem, nproc)
        yield judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=rigor))


def judge_honest_example(judge: Judge, example: Attempt) -> Record:
    settings = JudgementSettings(track=example.track, rigor=_RIGOR if example.timed else None)
    return judge.judge(replace(example.pose(judge), limits=Limits()), Candidate.read(example.path), settings)


def _pose_honest(judge: Judge, problem: Problem, nproc: int = 2) -> Setup:
    """Pose a problem with ordinary limits in place of the red team's short ones."""
    return replace(judge.pose(problem, ProblemSettings(nproc=nproc, trials=_TRIALS)), limits=Limits())


def _read_header(path: Path) -> dict[str, str]:
    """Return the lines `key: value` at the beginning of a file's docstring, up to the first empty line."""
    text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    pairs = [line.partition(":") for line in text.split("\n\n")[0].splitlines()]
    known = {field.name for field in fields(Attempt)}
    if strange := [key for key, _, _ in pairs if key not in known]:
        raise ValueError(f"unknown line {strange[0]!r}")
    return {key: value.strip() for key, _, value in pairs}


def _parse_outcomes(text: str) -> tuple[Outcome, ...]:
    return tuple(Outcome.parse(part) for part in text.split("|"))


_PARSERS: dict[str, Callable[[str], Any]] = {
    "row": str.lower,
    "expect": _parse_outcomes,
    "unscreened": _parse_outcomes,
    "warns": lambda text: tuple(text.split()),
    "nproc": int,
    "track": find_track,
    "timed": lambda text: text == "yes",
}
"""Functions that parse a value of the header, by its key; all other values are text."""
