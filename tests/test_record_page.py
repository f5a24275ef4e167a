"""The pages about records and runs name every field of a record and of all its parts, in order, and no other."""

import re
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from helpers.made_records import timed_record
from pkb.analyse import Row
from pkb.analyse.export import Entry
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.record import (
    SCHEMA,
    BaselineTimes,
    CandidateFacts,
    ControlTimes,
    Environment,
    Evidence,
    KernelTime,
    ProfileSummary,
    Record,
    SandboxFacts,
    SetupFacts,
    Timing,
)
from pkb.screen import ScreenFinding
from pkb.settings import Limits, ProblemSettings, Tolerance
from pkb.trial import Trial

DOCS = Path(__file__).parents[1] / "docs"
PAGE = "\n".join((DOCS / f"{name}.md").read_text() for name in ("record", "record-times", "runs"))
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
PARTS = {
    "Record": Record,
    "Candidate": CandidateFacts,
    "Setup": SetupFacts,
    "Evidence": Evidence,
    "Findings": ScreenFinding,
    "Timing": Timing,
    "Control": ControlTimes,
    "Baselines": BaselineTimes,
    "Profile": ProfileSummary,
    "Environment": Environment,
    "Sandbox": SandboxFacts,
}
IN_ONE_LINE = {KernelTime: ("Profile", "top"), Trial: ("Evidence", "trial"), Tolerance: ("Setup", "compare")}
"""Small parts that the page describes in the line of the field that holds them."""


def list_fields(section: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", SECTIONS[section], re.MULTILINE)


def find_parts(kind: Any) -> Iterator[type]:
    """Yield all dataclasses that a type is made of."""
    if is_dataclass(kind):
        assert isinstance(kind, type)
        yield kind
        for hint in typing.get_type_hints(kind).values():
            yield from find_parts(hint)
    for inner in typing.get_args(kind):
        yield from find_parts(inner)


@pytest.mark.parametrize(("section", "kind"), [*PARTS.items(), ("Rows", Row)])
def test_every_field_is_described(section: str, kind: Any) -> None:
    assert list_fields(section) == [one.name for one in fields(kind)]


def test_every_part_of_a_record_is_described() -> None:
    assert set(find_parts(Record)) == {*PARTS.values(), *IN_ONE_LINE, Limits}


@pytest.mark.parametrize("kind", IN_ONE_LINE)
def test_small_parts_are_described_in_one_line(kind: Any) -> None:
    section, field = IN_ONE_LINE[kind]
    (line,) = re.findall(rf"^\| `{field}` \| (.*) \|$", SECTIONS[section], re.MULTILINE)
    assert [one.name for one in fields(kind)] == [name for name in re.findall(r"`(\w+)`", line) if name != "oracle"]


def test_what_a_line_adds_is_described() -> None:
    assert list_fields("Export and import") == [one.name for one in fields(Entry) if one.name != "record"]


def test_the_schema_is_the_present_one() -> None:
    assert f"| `schema` | {SCHEMA} |" in SECTIONS["Record"]


def test_a_record_survives_json_and_leaves_out_what_is_empty(judge: Judge) -> None:
    problem = load_problem("allreduce")
    record = judge.judge(judge.pose(problem, ProblemSettings(nproc=2, trials=1)), Candidate.reference(problem))
    for one in (record, timed_record()):
        assert Record.from_json(one.to_json()) == one
    written = record.to_fields()
    assert list(written) == list_fields("Record")
    assert written["evidence"] == {}
    assert None not in written["setup"].values()
    assert {"size", "inputs", "state", "degenerate"}.isdisjoint(written["setup"])
