"""Attempts to cheat that need a GPU are caught, by the check that their header names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pkb.judge.judge import Judge
from pkb.platforms import load_platforms
from pkb.tools.redteam import Attempt, choose_limits, read_attempts, stage

lacking = load_platforms()["shared-gpu"].find_missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(lacking is not None, reason=f"no shared GPU here: {lacking}")]

ATTEMPTS = [a for a in read_attempts(Path(__file__).parents[2] / "redteam") if a.platform == "gpu"]
CASES = [
    pytest.param(attempt, screened, id=attempt.path.stem + ("" if screened else "-unscreened"))
    for attempt in ATTEMPTS
    for screened in attempt.list_modes()
]


@pytest.fixture(scope="module")
def gpu() -> Iterator[Judge]:
    with Judge("shared-gpu", choose_limits(load_platforms()["shared-gpu"])) as judge:
        yield judge


@pytest.mark.parametrize(("attempt", "screened"), CASES)
def test_caught(gpu: Judge, attempt: Attempt, screened: bool) -> None:
    finding = stage(gpu, attempt, screened)
    assert finding.is_caught, f"{finding.outcome}: {finding.reason} {finding.missing_warnings}"
