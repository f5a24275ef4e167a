"""A problem declares no more work than its reference does, and where it declares far less a comment says why."""

import inspect
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from pkb.problems.problem import Problem
from pkb.problems.suite import list_problems

ALL = list_problems()
KINDS = ("flops", "egress", "ingress")
WORLDS = (2, 4)
Entries = list[dict[str, Any]]

# How much these compute and move depends on the values drawn, and they declare what the draw leads to on average: how
# many tokens an expert gets (28, 29, 31, 32, 49 to 51), how many rows one rank wants of another (10, 27, 64 to 68), how
# many Gaussians a camera sees (61), how long a bag is (70).
AVERAGED = {10, 27, 28, 29, 31, 32, 49, 50, 51, 61, 64, 65, 66, 67, 68, 70}
AVERAGED_SLACK, SLACK = 1.15, 1.01
FEW = 8
"""Bytes or operations that do not matter."""


@pytest.fixture(scope="module")
def census_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run run_census.py, and return the folder with one file per world and rank."""
    folder, script = tmp_path_factory.mktemp("census"), Path(__file__).parent / "run_census.py"
    command = [sys.executable, "-W", "ignore", script, folder, ",".join(map(str, AVERAGED)), ",".join(map(str, WORLDS))]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
    assert ran.returncode == 0, ran.stdout
    return folder


@pytest.fixture(scope="module", params=WORLDS)
def census(request: pytest.FixtureRequest, census_folder: Path) -> Entries:
    """Return the entries of all ranks of a world."""
    files = [census_folder / f"{request.param}-{rank}.json" for rank in range(request.param)]
    return [entry for file in files for entry in json.loads(file.read_text())]


def group_entries(census: Entries, problem: Problem, *keys: str) -> list[Entries]:
    """Return the entries that are summed before a comparison: equal in the keys, or all where averages are declared."""
    groups: dict[tuple, Entries] = defaultdict(list)
    for entry in census:
        if entry["problem"] == problem.stem:
            groups[() if problem.id in AVERAGED else tuple(entry[key] for key in keys)].append(entry)
    if not groups:
        pytest.skip("cannot be posed at this world size")
    return list(groups.values())


def sum_work(entries: Entries, kind: str) -> tuple[float, float]:
    """Return the declared and the counted work."""
    return sum(entry["declared"][kind] for entry in entries), sum(entry["counted"][kind] for entry in entries)


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.stem)
def test_declared_work_is_no_more_than_the_reference_does(census: Entries, problem: Problem) -> None:
    slack = AVERAGED_SLACK if problem.id in AVERAGED else SLACK
    for entries in group_entries(census, problem, "trial", "rank"):
        for kind in KINDS:
            declared, counted = sum_work(entries, kind)
            assert declared <= slack * counted + FEW, (kind, entries[0])


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.stem)
def test_a_comment_says_what_the_reference_wastes(census: Entries, problem: Problem) -> None:
    totals = [(kind, *sum_work(entries, kind)) for entries in group_entries(census, problem, "trial") for kind in KINDS]
    wasted = [(kind, declared, counted) for kind, declared, counted in totals if declared + FEW < counted / 2]
    source = inspect.getsource(problem.module.cost).splitlines()
    comments = " ".join(line for line in source if line.strip().startswith("#"))
    assert not wasted or "reference" in comments
