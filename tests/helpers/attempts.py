"""The red team's attempts, as cases of tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pkb.platforms import find_platform
from pkb.tools.redteam import Attempt, read_attempts

ROOT = Path(__file__).parents[2]
ATTEMPTS = read_attempts(ROOT / "redteam")


CLOCK_CHECKS = ("outside-clock", "idle", "threads")
"""Checks that compare times. All others find the same on a busy machine, also in an attempt that is timed."""


def list_cases(by_clock: bool) -> Iterator[object]:
    """Yield the attempts for a CPU, with the screen and, where they name an outcome, without; `by_clock` selects those
    that a clock may catch, or all others."""
    for attempt in ATTEMPTS:
        if not attempt.find_obstacle(find_platform("cpu")):
            for screened in attempt.list_modes():
                if is_caught_by_clock(attempt, screened) == by_clock:
                    yield pytest.param(attempt, screened, id=attempt.path.stem + ("" if screened else "-unscreened"))


def is_caught_by_clock(attempt: Attempt, screened: bool) -> bool:
    expected = attempt.find_expected(screened)
    return attempt.timed and any(one.verdict == "CORRECT" or one.check in CLOCK_CHECKS for one in expected)
