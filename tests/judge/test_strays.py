"""Processes that ranks leave behind: each is put down to the world that it came from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pkb.judge import Judge
from pkb.judge.world import World
from pkb.record import Verdict
from pkb.registry import load

SLEEPER = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
ADOPTED = """
import os, subprocess, sys
if os.fork() == 0:
    {first}
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    os._exit(0)
os.wait()
"""
SOLUTION = "\ndef solution(tensor):\n    return tensor\n"


@contextmanager
def started(judge: Judge, blame: Verdict) -> Iterator[World]:
    with World(judge.nursery, 1, judge.limits, blame=blame) as world:
        world.start()
        yield world


def load_in(world: World, source: str, folder: Path) -> None:
    file = folder / "candidate.py"
    file.write_text(source + SOLUTION)
    world.ask({"do": "load", "problem": str(load("allreduce").path), "candidate": str(file)}, "load", 30)


@pytest.mark.parametrize("first", ["pass", "os.setsid()"])
def test_what_a_candidate_leaves_is_not_swept_away_with_a_reference(judge: Judge, tmp_path: Path, first: str) -> None:
    with started(judge, Verdict.ENVIRONMENT) as ours, started(judge, Verdict.CRASH) as theirs:
        load_in(theirs, ADOPTED.format(first=first), tmp_path)
        assert ours.end() == []
        (left,) = theirs.end()
        assert "sleep(600)" in left


def test_what_a_reference_leaves_is_not_put_down_to_a_candidate(judge: Judge, tmp_path: Path) -> None:
    with started(judge, Verdict.ENVIRONMENT) as ours, started(judge, Verdict.CRASH) as theirs:
        load_in(ours, SLEEPER, tmp_path)
        ours.leave()
        assert ours._exit_code(0) == 0
        assert theirs.end() == []
        (left,) = ours.end()
        assert "sleep(600)" in left
