"""One compact row per sample: what tables need of its latest record, without the raw times."""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pkb.base.foreign_files import RECORD_BYTES, parse_json, read_own_file
from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.record import MOST_RANKS, Pace, Verdict, check_schema
from pkb.runs import RECORD, Damage, Run, Sample, describe_damage, find_problem_number

_RAW = b'"blocks_us":'
_FIGURES = b"0123456789.eE+-[], \t\r\n"
_WORLDS = b'{"reference":"candidate":'.translate(None, _FIGURES)
"""What is left of raw times without their figures."""
_MOST_US, _MOST_RATIO, _MOST_SIZE = 1e12, 1e9, 1 << 53
_WORDS = {kind: frozenset(one.value for one in kind) for kind in (Verdict, Pace)}
_MOST_PROBLEMS = 10_000
"""The most problems of a run: the memory of a bootstrap grows with them."""
_NAME = 255
"""The most characters of a name."""
PUBLISHED = "published"
"""The inputs of a KernelBench task as its file draws them, under which fewer mistakes show."""


@dataclass(slots=True)
class Row:
    run: str
    """The run's name; samples judged with published inputs are a run of their own."""
    model: str
    """The model's name; the run's name where run.json names no model."""
    backend: str
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
    """For KernelBench's tasks: sound or published."""
    degenerate: str
    """Why the problem counts for nothing."""
    when: str
    folder: str

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


@dataclass
class Rows:
    rows: list[Row] = field(default_factory=list)
    turns: dict[str, list[Row]] = field(default_factory=dict)
    """By the folder of a sample in several turns: a row for each turn that has a record, in order."""
    damaged: list[Damage] = field(default_factory=list)


def read_rows(paths: Iterable[Path | str]) -> Rows:
    """Return the samples of these runs that have a record, and the files that cannot be read."""
    found = Rows()
    runs = [Run(path) for path in paths]
    names = [run.name for run in runs]
    for run, name in zip(runs, names, strict=True):
        _read_run(run, name if names.count(name) == 1 else str(run.folder), found)
    return found


def _read_run(run: Run, name: str, found: Rows) -> None:
    facts = run.read_facts()
    if isinstance(facts, Damage):
        found.damaged.append(facts)
        facts = {}
    name = clean_line(name, _NAME)
    model = clean_line(str(facts.get("model") or name), _NAME)
    problems: set[str] = set()
    for problem, folder in run.list_folders(found.damaged):
        problems.add(problem)
        if len(problems) > _MOST_PROBLEMS:
            raise UsageError(f"{run.folder} has more than {_MOST_PROBLEMS} problems; divide it into several runs")
        if row := _read_row(name, model, problem, folder, found):
            found.rows.append(row)
        if os.path.isdir(os.path.join(folder, "turns")):
            turns = [str(turn) for turn in Sample(problem, Path(folder)).turns if turn.name.isdecimal()]
            rows = [row for turn in turns if (row := _read_row(name, model, problem, turn, found))]
            found.turns[folder] = [replace(row, sample=clean_line(os.path.basename(folder), _NAME)) for row in rows]


def _read_row(name: str, model: str, problem: str, folder: str, found: Rows) -> Row | None:
    path = os.path.join(folder, RECORD)
    try:
        fields = _parse_fields(read_own_file(path, RECORD_BYTES))
        return make_row(name, model, problem, folder, fields)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        found.damaged.append(Damage(Path(path), describe_damage(error)))
        return None


def _parse_fields(content: bytes) -> dict[str, Any]:
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

    def get_text(self, name: str, length: int = _NAME, default: str | None = None) -> str:
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
        problem=shared(problem),
        number=find_problem_number(problem),
        category=shared(record.get_text("category")),
        sample=clean_line(os.path.basename(folder), _NAME),
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
