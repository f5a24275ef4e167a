"""One compact row per sample: what tables need of its latest record, without the raw times."""

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pkb.record import Pace, Verdict, upgraded
from pkb.runs import RECORD, Damage, Run, Sample, damage, number_of

_RAW = b'"blocks_us":'
PUBLISHED = "published"
"""Inputs and weights of a model as the public convention has them, under which less shows."""


@dataclass(slots=True)
class Row:
    run: str
    """Its name; samples judged with published inputs are a run of their own."""
    model: str
    """The run's name where nobody said whose it is."""
    backend: str
    problem: str
    number: int
    """The problem's."""
    category: str
    sample: str
    verdict: str
    reason: str
    check: str | None
    """Which check failed."""
    pace: str
    speedup: float | None
    low: float | None
    high: float | None
    reference_us: float | None
    candidate_us: float | None
    roofline_us: float | None
    percent: float | None
    """Of the speed of light that the candidate reached."""
    platform: str
    world: int
    dtype: str
    m: int
    n: int
    size: str
    """Of a model, in place of the last two."""
    inputs: str
    """Of a model: sound or published."""
    degenerate: str
    """Why the problem counts for nothing."""
    when: str
    folder: str

    @property
    def turn(self) -> int:
        """Of a row that stands for one turn of a sample."""
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
    """By the sample's folder, of those in several turns: a row for each turn that has a record, in order."""
    damaged: list[Damage] = field(default_factory=list)


def rows(paths: Iterable[Path | str]) -> Rows:
    """The samples of these runs that have a record. Damaged ones are named and left out."""
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
    for problem, folder in run.folders():
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
            fields = _parsed(file.readall())
        return row_of(name, model, problem, folder, fields)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        found.damaged.append(Damage(Path(path), damage(error)))
        return None


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        return upgraded(json.loads(_without_raw(content).decode()))
    except json.JSONDecodeError:
        # The word stood elsewhere too, or the file is damaged.
        return upgraded(json.loads(content.decode()))


def _without_raw(content: bytes) -> bytes:
    """Without the raw times: they are most of a record, and nothing but numbers in brackets up to the next brace."""
    start = content.find(_RAW)
    end = content.find(b"}", start)
    return content[:start] + _RAW + b"{" + content[end:] if 0 <= start < end else content


def row_of(run: str, model: str, problem: str, folder: str, fields: dict[str, Any]) -> Row:
    setup, timing = fields["setup"], fields["timing"] or {}
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
        number=number_of(problem),
        category=shared(fields["category"]),
        sample=os.path.basename(folder),
        verdict=shared(Verdict(fields["verdict"]).value),
        reason=str(fields["reason"]),
        check=None if check is None else str(check),
        pace=shared(Pace(fields["pace"]).value),
        speedup=_figure(timing.get("speedup")),
        low=_figure(low),
        high=_figure(high),
        reference_us=_figure(timing.get("reference_us")),
        candidate_us=_figure(timing.get("candidate_us")),
        roofline_us=_figure(timing.get("roofline_us")),
        percent=_figure(percent),
        platform=shared(fields["environment"].get("platform", "")),
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


def _figure(value: Any) -> float | None:
    """Raises ValueError or TypeError for what is none."""
    return None if value is None else float(value)
