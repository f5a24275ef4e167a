"""Candidates that misbehave in every way that we know, one after the other in one judge, leave nothing behind."""

import sys
from pathlib import Path

from helpers.processes import run_process

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "hostile.py"


def test_a_batch_of_hostile_candidates_leaves_nothing() -> None:
    done = run_process([sys.executable, str(PROGRAM), "--count", "42", "--seed", "1"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| honest | 2 | CORRECT 2 |" in done.stdout
