"""One compact row per sample: what tables and data frames need of its latest record, without the raw times."""

import os
import re
import sys
from dataclasses import dataclass, fields
from typing import Any

from pkb.base.foreign_files import RECORD_BYTES, parse_json, read_own_file
from pkb.base.printable import clean_line
from pkb.display import format_speedup
from pkb.record import MOST_RANKS, Pace, Verdict, check_schema

_RAW = b'"blocks_us":'
_FIGURES = b"0123456789.eE+-[], \t\r\n"
_WORLDS = b'{"reference":"candidate":'.translate(None, _FIGURES)
"""What is left of raw times without their figures."""
_MOST_US, _MOST_RATIO, _MOST_SIZE = 1e12, 1e9, 1 << 53
_WORDS = {kind: frozenset(one.value for one in kind) for kind in (Verdict, Pace)}
NAME = 255
"""The most characters of a name."""
RECORD = "record.json"
PROBLEM = re.compile(r"(?:L(\d{1,4})_)?(\d{1,9})_[\w-]{1,200}")
"""Matches a problem's stem; the names of KernelBench's tasks begin with a level."""
_LEVEL = 1000
PUBLISHED = "published"
"""The inputs of a KernelBench task as its file draws them, under which fewer mistakes show."""


@dataclass(slots=True)
class Row:
    run: str
    """The run's name; samples judged with published inputs are a run of their own."""
    model: str
    """The model's name; the run's name where run.json names no model."""
    backend: str
    suite: str
    """Where the problem comes from: parallel, kernelbench, or the name of a folder."""
    problem: str
    number: int
    """The problem's number."""
    category: str
    sample: str
    verdict: str
    reason: str
    check: str | None
    """The check that failed."""
    pace: str
    speedup: float | None
    low: float | None
    high: float | None
    reference_us: float | None
    candidate_us: float | None
    roofline_us: float | None
    percent: float | None
    """The percentage of the speed of light that the candidate reached."""
    platform: str
    comparable: bool
    """Whether times on the platform may be compared between judgements."""
    world: int
    dtype: str
    m: int
    n: int
    size: str
    """The name of a KernelBench task's size, which has it in place of `m` and `n`."""
    inputs: str
    """For KernelBench's tasks and checkouts of ParallelKernelBench: sound or published."""
    degenerate: str
    """Why the problem counts for nothing."""
    when: str
    folder: str

    def format_speedup(self) -> str:
        """Return the speed-up with its interval; empty without one."""
        if self.speedup is None or self.low is None or self.high is None:
            return ""
        return format_speedup(self.speedup, self.low, self.high, self.comparable)

    @property
    def turn(self) -> int:
        """The turn's number, if the row stands for one turn of a sample."""
        return int(os.path.basename(self.folder))

    @property
    def correct(self) -> bool:
        return self.verdict == Verdict.CORRECT

    @property
    def counts(self) -> bool:
        """Whether the outcome says anything about the candidate."""
        return self.verdict != Verdict.ENVIRONMENT and not self.degenerate


def find_column_types() -> dict[str, Any]:
    """Return the type of each column; an optional one has the type of its values."""
    return {one.name: next(iter(getattr(one.type, "__args__", ())), one.type) for one in fields(Row)}


def read_row(run: str, model: str, problem: str, folder: str) -> Row | None:
    """Return the row of the latest record in a sample's folder; None without one.

    Raises OSError, ValueError or RecursionError for a record that cannot be read.
    """
    try:
        content = read_own_file(os.path.join(folder, RECORD), RECORD_BYTES)
    except FileNotFoundError:
        return None
    return make_row(run, model, problem, folder, parse_fields(content))


def parse_fields(content: bytes) -> dict[str, Any]:
    """Return the fields of a record's file, without the raw times. Raises ValueError for another file."""
    fields = parse_json(_cut_raw_times(content))
    check_schema(fields)
    return fields


def _cut_raw_times(content: bytes) -> bytes:
    """Return a record without its raw times: they are most of it, and only numbers in brackets up to the next brace."""
    start = content.find(_RAW)
    end = content.find(b"}", start)
    raw = content[start + len(_RAW) : end].translate(None, _FIGURES) if 0 <= start < end else b""
    # Anything else there could make this reader see another record than one that parses all of it.
    return content[:start] + _RAW + b"{" + content[end:] if raw == _WORLDS else content


@dataclass(frozen=True, slots=True)
class _Part:
    """An object of a record, whose fields are read one by one; what does not fit is named."""

    place: str
    fields: dict[str, Any]

    def get_part(self, name: str) -> "_Part":
        return _Part(f"{self.place}{name}.", self.fields.get(name) or {})

    def get_text(self, name: str, length: int = NAME, default: str | None = None) -> str:
        """Return a text, or the default where there is none. Raises ValueError for anything else."""
        value = self.fields.get(name)
        if value is None:
            value = default
        if type(value) is not str:
            raise ValueError(
                f"not a record: {self._describe(name)} is no text" if value is not None else self._miss(name)
            )
        return clean_line(value, length)

    def get_figure(self, name: str, low: float, high: float) -> float | None:
        """Return a number, or None where there is none. Raises ValueError for anything else, and out of bounds."""
        return self.check_figure(name, self.fields.get(name), low, high)

    def check_figure(self, name: str, value: Any, low: float, high: float) -> float | None:
        if value is None:
            return None
        if type(value) not in (int, float) or not low <= value <= high:
            raise ValueError(f"not a record: {self._describe(name)} is no number between {low:g} and {high:g}")
        return float(value)

    def get_count(self, name: str, low: int, high: int, default: int | None = None) -> int:
        value = self.fields.get(name)
        if value is None:
            value = default
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"not a record: {self._describe(name)} is no whole number from {low} to {high}")
        return value

    def _describe(self, name: str) -> str:
        return f"{self.place}{name}"

    def _miss(self, name: str) -> str:
        return f"not a record: it has no {self._describe(name)!r}"


def find_problem_number(problem: str) -> int:
    """Return a number by which problems are ordered: all of one level before those of the next."""
    found = PROBLEM.fullmatch(problem)
    return _LEVEL * int(found[1] or 0) + int(found[2]) if found else 0


def make_row(run: str, model: str, problem: str, folder: str, fields: dict[str, Any]) -> Row:
    """Return the row of a record's JSON fields. Raises ValueError where they do not fit.

    Fields, not a Record: parsing 100 000 records in full would take longer than everything else that a report does.
    """
    record = _Part("", fields)
    candidate, setup, evidence = (record.get_part(name) for name in ("candidate", "setup", "evidence"))
    timing, environment = record.get_part("timing"), record.get_part("environment")
    speedup = timing.get_figure("speedup", 1 / _MOST_RATIO, _MOST_RATIO)
    low, high = _read_interval(timing)
    if timing.fields and (speedup is None or low is None):
        raise ValueError("not a record: timing has no speedup with an interval")
    check, inputs = evidence.fields.get("check"), setup.get_text("inputs", default="")
    shared = sys.intern
    label = shared(f"{run} (published inputs)") if inputs == PUBLISHED else run
    return Row(
        run=label,
        model=label if model == run else model,
        backend=shared(candidate.get_text("backend")),
        suite=shared(setup.get_text("suite", default="") or _guess_suite(problem)),
        problem=shared(problem),
        number=find_problem_number(problem),
        category=shared(record.get_text("category")),
        sample=clean_line(os.path.basename(folder), NAME),
        verdict=shared(_choose_word(Verdict, record.get_text("verdict"), "verdict")),
        reason=record.get_text("reason", length=4000),
        check=None if check is None else evidence.get_text("check"),
        pace=shared(_choose_word(Pace, record.get_text("pace"), "pace")),
        speedup=speedup,
        low=low,
        high=high,
        reference_us=timing.get_figure("reference_us", 1e-6, _MOST_US),
        candidate_us=timing.get_figure("candidate_us", 1e-6, _MOST_US),
        roofline_us=timing.get_figure("roofline_us", 0, _MOST_US),
        percent=_read_percent(timing),
        platform=shared(environment.get_text("platform", default="")),
        comparable=environment.fields.get("comparable_times") is True,
        world=setup.get_count("world", 1, MOST_RANKS),
        dtype=shared(setup.get_text("dtype", default="")),
        m=setup.get_count("m", 0, _MOST_SIZE, default=0),
        n=setup.get_count("n", 0, _MOST_SIZE, default=0),
        size=shared(setup.get_text("size", default="")),
        inputs=shared(inputs),
        degenerate=shared(setup.get_text("degenerate", length=4000, default="")),
        when=record.get_text("when", length=40),
        folder=folder,
    )


def _guess_suite(problem: str) -> str:
    """Return the suite of a record that does not name it: only names of KernelBench's tasks begin with a level."""
    found = PROBLEM.fullmatch(problem)
    return "kernelbench" if found and found[1] else "parallel"


def _choose_word(kind: type[Verdict] | type[Pace], word: str, place: str) -> str:
    if word not in _WORDS[kind]:
        raise ValueError(f"not a record: {place} is {clean_line(word, 80)!r}, not one of {', '.join(kind)}")
    return word


def _read_interval(timing: _Part) -> tuple[float | None, float | None]:
    ends = timing.fields.get("interval")
    if ends is None:
        return None, None
    if not isinstance(ends, list) or len(ends) != 2:
        raise ValueError("not a record: timing.interval is no pair of numbers")
    low, high = (timing.check_figure("interval", end, 0, _MOST_US) for end in ends)
    if low is None or high is None or low > high:
        raise ValueError("not a record: timing.interval is no interval")
    return low, high


def _read_percent(timing: _Part) -> float | None:
    percents = timing.fields.get("percent_of_roofline") or {}
    if not isinstance(percents, dict):
        raise ValueError("not a record: timing.percent_of_roofline is no object")
    return timing.check_figure("percent_of_roofline", percents.get("candidate"), 0, 1e15)
