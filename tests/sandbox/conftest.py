from collections.abc import Iterator

import pytest

from helpers.confined import Locked
from helpers.deadlines import DEADLINE_S
from pkb.judge.judge import Judge
from pkb.sandbox import linux
from pkb.settings import Limits


@pytest.fixture(scope="module")
def the_locked() -> Iterator[Locked]:
    with Judge("cpu", Limits(load_s=20, trial_s=2 * DEADLINE_S)) as judge:
        locked = Locked(judge)
        yield locked
        locked.restart()


@pytest.fixture
def locked(the_locked: Locked) -> Iterator[Locked]:
    yield the_locked
    # The level `limits` hides the judge's memory; other tests want this process as it was.
    linux.prctl(linux.PR_SET_DUMPABLE, 1)
