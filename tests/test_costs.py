"""What a problem declares as its least work is no more than its reference does, and where it is far less a comment
says why."""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pkb.problem import Problem
from pkb.registry import problems

ALL = problems()
Census = dict[str, list[dict[str, Any]]]
KINDS = ("flops", "egress", "ingress")

# How many rows these exchange depends on the values drawn, and they declare what the draw leads to on average:
# how many tokens an expert gets (28, 29, 31, 32, 49 to 51), how many rows or ids a rank asks of another (10, 27, 64
# to 68), how long the bags are (70), how many Gaussians a camera sees (61).
AVERAGED = {10, 27, 28, 29, 31, 32, 49, 50, 51, 61, 64, 65, 66, 67, 68, 70}
SLACK, AVERAGED_SLACK = 0.01, 0.15
ROUNDING = 8
"""Bytes or operations that do not matter."""


@pytest.fixture(scope="module", params=[2, 4])
def census(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Census:
    """What every rank counted in every trial, by problem."""
    folder, world = tmp_path_factory.mktemp("census"), request.param
    command = [sys.executable, "-W", "ignore", str(Path(__file__).parent / "run_census.py"), str(folder), str(world)]
    ranks = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(world)
    ]
    outputs = [rank.communicate(timeout=240)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world, "\n".join(outputs)
    entries = [entry for rank in range(world) for entry in json.loads((folder / f"{rank}.json").read_text())]
    return {problem.stem: [entry for entry in entries if entry["problem"] == problem.stem] for problem in ALL}


def total(entries: Iterable[dict[str, Any]], side: str, kind: str) -> float:
    return sum(entry[side][kind] for entry in entries)


def comparable(problem: Problem, entries: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Groups of entries to sum before a comparison: all, where the sizes are averages; else the ranks of each trial."""
    if problem.id in AVERAGED:
        return [entries]
    trials = {entry["trial"] for entry in entries}
    return [[entry for entry in entries if entry["trial"] == trial] for trial in trials]


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.stem)
def test_declared_work_is_no_more_than_the_reference_does(census: Census, problem: Problem) -> None:
    entries, averaged = census[problem.stem], problem.id in AVERAGED
    slack = AVERAGED_SLACK if averaged else SLACK
    for group in [entries] if averaged else [[entry] for entry in entries]:
        for kind in KINDS:
            allowed = (1 + slack) * total(group, "counted", kind) + ROUNDING
            assert total(group, "declared", kind) <= allowed, (kind, group)


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.stem)
def test_a_comment_says_what_a_wasteful_reference_wastes(census: Census, problem: Problem) -> None:
    wasted = {
        kind
        for group in comparable(problem, census[problem.stem])
        for kind in KINDS
        if 2 * total(group, "declared", kind) + ROUNDING < total(group, "counted", kind)
    }
    lines = inspect.getsource(problem.module.cost).splitlines()
    comments = " ".join(line for line in lines if line.strip().startswith("#"))
    assert not wasted or "reference" in comments, wasted
