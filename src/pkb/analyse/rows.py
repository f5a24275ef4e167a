"""One compact row per sample: what tables need of its latest record, without the raw times."""

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pkb.record import Pace, Verdict, check_schema
from pkb.runs import RECORD, Damage, Run, Sample, describe_damage, find_problem_number

_RAW = b'"blocks_us":'
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
    model = str(facts.get("model") or name)
    for problem, folder in run.list_folders():
        if row := _read_row(name, model, problem, folder, found):
            found.rows.append(row)
        if os.path.isdir(os.path.join(folder, "turns")):
            turns = [str(turn) for turn in Sample(problem, Path(folder)).turns if turn.name.isdecimal()]
            rows = [row for turn in turns if (row := _read_row(name, model, problem, turn, found))]
            found.turns[folder] = [replace(row, sample=os.path.basename(folder)) for row in rows]


def _read_row(name: str, model: str, problem: str, folder: str, found: Rows) -> Row | None:
    path = os.path.join(folder, RECORD)
    try:
        with open(path, "rb", buffering=0) as file:
            fields = _parse_fields(file.readall())
        return make_row(name, model, problem, folder, fields)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        found.damaged.append(Damage(Path(path), describe_damage(error)))
        return None


def _parse_fields(content: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(_cut_raw_times(content).decode())
    except json.JSONDecodeError:
        # The word stood elsewhere too, or the file is damaged.
        fields = json.loads(content.decode())
    check_schema(fields)
    return fields


def _cut_raw_times(content: bytes) -> bytes:
    """Return a record without its raw times: they are most of it, and only numbers in brackets up to the next brace."""
    start = content.find(_RAW)
    end = content.find(b"}", start)
    return content[:start] + _RAW + b"{" + content[end:] if 0 <= start < end else content


def make_row(run: str, model: str, problem: str, folder: str, fields: dict[str, Any]) -> Row:
    """Return the row of a record's JSON fields. Raises ValueError, TypeError or KeyError where they do not fit.

    Fields, not a Record: parsing 100 000 records in full would take longer than everything else that a report does.
    """
    setup, timing, environment = fields["setup"], fields["timing"] or {}, fields["environment"]
    low, high = timing.get("interval") or (None, None)
    percent = timing.get("percent_of_roofline", {}).get("candidate")
    check, inputs = fields["evidence"].get("check"), setup.get("inputs", "")
    shared = sys.intern
    label = shared(f"{run} (published inputs)") if inputs == PUBLISHED else run
    return Row(
        run=label,
        model=label if model == run else model,
        backend=shared(fields["candidate"]["backend"]),
        problem=shared(problem),
        number=find_problem_number(problem),
        category=shared(fields["category"]),
        sample=os.path.basename(folder),
        verdict=shared(Verdict(fields["verdict"]).value),
        reason=str(fields["reason"]),
        check=None if check is None else str(check),
        pace=shared(Pace(fields["pace"]).value),
        speedup=_parse_figure(timing.get("speedup")),
        low=_parse_figure(low),
        high=_parse_figure(high),
        reference_us=_parse_figure(timing.get("reference_us")),
        candidate_us=_parse_figure(timing.get("candidate_us")),
        roofline_us=_parse_figure(timing.get("roofline_us")),
        percent=_parse_figure(percent),
        platform=shared(environment.get("platform", "")),
        comparable=bool(environment["comparable_times"]),
        world=int(setup["world"]),
        dtype=shared(setup["dtype"]),
        m=int(setup.get("m", 0)),
        n=int(setup.get("n", 0)),
        size=shared(setup.get("size", "")),
        inputs=shared(inputs),
        degenerate=shared(setup.get("degenerate", "")),
        when=str(fields["when"]),
        folder=folder,
    )


def _parse_figure(value: Any) -> float | None:
    """Return a number, or None for null. Raises ValueError or TypeError for anything else."""
    return None if value is None else float(value)
