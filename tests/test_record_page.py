"""docs/record.md names every field there is, in order, and no other."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pkb.analyse import Row
from pkb.analyse.export import Entry
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.record import SCHEMA, Record
from pkb.settings import ProblemSettings
from pkb.speedup import Timing

PAGE = (Path(__file__).parents[1] / "docs" / "record.md").read_text()
SECTIONS = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def listed(section: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", SECTIONS[section], re.MULTILINE)


@pytest.mark.parametrize(("section", "kind"), [("Record", Record), ("Timing", Timing), ("Rows", Row)])
def test_every_field_is_described(section: str, kind: Any) -> None:
    assert listed(section) == [one.name for one in fields(kind)]


def test_what_a_line_adds_is_described() -> None:
    assert listed("Export and import") == [one.name for one in fields(Entry) if one.name != "record"]


def test_the_parts_of_a_record_are_described(judge: Judge) -> None:
    problem = load_problem("allreduce")
    record = judge.judge(judge.pose(problem, ProblemSettings(nproc=2, trials=1)), Candidate.reference(problem))
    meanings = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", SECTIONS["Record"], re.MULTILINE))
    for part in ("candidate", "setup"):
        assert list(getattr(record, part)) == re.findall(r"`(\w+)`", meanings[part].replace("(`oracle`", ""))
    assert meanings["schema"] == str(SCHEMA)
