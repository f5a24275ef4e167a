"""Attempts to cheat the clocks are caught, by the check that their headers name."""

import pytest

from helpers.attempts import list_cases
from pkb.judge.judge import Judge
from pkb.tools.redteam import Attempt, stage

pytestmark = pytest.mark.clock


@pytest.mark.parametrize(("attempt", "screened"), list(list_cases(by_clock=True)))
def test_caught(impatient: Judge, attempt: Attempt, screened: bool) -> None:
    finding = stage(impatient, attempt, screened)
    assert finding.is_caught, f"{finding.outcome}: {finding.reason} {finding.missing_warnings}"
