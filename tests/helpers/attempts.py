"""The red team's attempts, as cases of tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pkb.platforms import find_platform
from pkb.tools.redteam import read_attempts

ROOT = Path(__file__).parents[2]
ATTEMPTS = read_attempts(ROOT / "redteam")


def list_cases(timed: bool) -> Iterator[object]:
    """Yield every attempt that can be staged on a CPU, with the screen and, where it names an outcome, without."""
    for attempt in ATTEMPTS:
        if attempt.timed == timed and not attempt.find_obstacle(find_platform("cpu")):
            for screened in attempt.list_modes():
                yield pytest.param(attempt, screened, id=attempt.path.stem + ("" if screened else "-unscreened"))
