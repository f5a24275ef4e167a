"""The example runs as a person would run it, and its report says what can be worked out by hand."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "without_an_account.py"


@pytest.mark.timeout(900)
def test_the_report_says_what_was_computed_by_hand(tmp_path: Path) -> None:
    words = ["--problems", "1-4", "--out", str(tmp_path), "--platform", "cpu"]
    ran = subprocess.run([sys.executable, str(EXAMPLE), *words], capture_output=True, text=True, timeout=840)
    assert ran.returncode == 0, ran.stderr
    figures = json.loads((tmp_path / "report" / "report.json").read_text())
    boards = {one["run"]: one["summary"] for one in figures["leaderboard"] if one["summary"]["category"] == "all"}
    # Of three answers 1, 2, 3 and 0 are right: (1/3 + 2/3 + 1 + 0) / 4, and three problems of four have one.
    assert passed(boards["generated"], 1) == pytest.approx(1 / 2)
    assert passed(boards["generated"], 3) == pytest.approx(3 / 4)
    assert (boards["generated"]["samples"], boards["generated"]["correct"]) == (12, 6)
    # Right in turn 2, 3, none and 1, and in no other; the best is kept.
    (by_turn,) = [one for one in figures["turns"] if one["figure"] == "right"]
    assert (by_turn["label"], [each["value"] for each in by_turn["values"]]) == ("refined", [1 / 4, 2 / 4, 3 / 4])
    assert passed(boards["refined"], 1) == pytest.approx(3 / 4)
    assert boards["refined"]["samples"] == 4
    assert passed(boards["agent"], 1) == 1.0
    for line in ("pass@1 = 50%, pass@3 = 75%", "right by turn 1 25%, turn 2 50%, turn 3 75%"):
        assert line in ran.stdout


def passed(summary: dict[str, Any], k: int) -> float:
    return summary["pass_at"][str(k)]["value"]
