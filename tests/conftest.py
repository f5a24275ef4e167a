"""One judge for the whole session: the nursery's imports are paid once, as in a long run."""

from collections.abc import Iterator

import pytest

from helpers.deadlines import DEADLINE_S
from pkb.judge.judge import Judge
from pkb.judge.setup.seeds import Seeds
from pkb.settings import Limits


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests compile neither comes from the person's cache nor goes there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PKB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge("cpu") as resident:
        # The same inputs in every run: a test that fails can be looked into.
        resident.seeds = Seeds(b"of the tests")
        yield resident


@pytest.fixture(scope="session")
def strict_judge() -> Iterator[Judge]:
    """Short deadlines and little memory, for candidates that misbehave."""
    limits = Limits(load_s=DEADLINE_S, trial_s=DEADLINE_S, memory_bytes=1 << 28)
    with Judge("cpu", limits) as resident:
        yield resident
