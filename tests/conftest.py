"""What all tests share: judges that live as long as the run, one cache, and a quiet machine for tests that time."""

import fcntl
import functools
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.deadlines import DEADLINE_S
from helpers.processes import restore_interrupts
from pkb.judge.judge import Judge
from pkb.judge.setup.seeds import Seeds
from pkb.settings import Limits

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
restore_interrupts()
# A worker would print mini-swe-agent's greeting after pytest's closing line.
os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")


@functools.cache
def open_lock() -> Any:
    """Return the file that a test locks to run alone, the same for all workers; it is removed when the run ends."""
    return tempfile.NamedTemporaryFile(prefix="pkb-tests-")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["lock"] = open_lock().name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where workers share the tests, begin with the files that have the most, and end with those that run alone.

    Workers take whole files in this order (`make test`), so that short files even out the end.
    """
    if IS_WORKER:
        sizes = Counter(item.path for item in items)
        alone = {item.path for item in items if runs_alone(item)}
        items.sort(key=lambda item: (item.path in alone, -sizes[item.path], str(item.path)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """Hold a lock that all workers share, and a test that runs alone has for itself."""
    if not IS_WORKER:
        return (yield)
    with open(item.config.workerinput["lock"]) as lock:  # type: ignore[attr-defined]
        fcntl.flock(lock, fcntl.LOCK_EX if runs_alone(item) else fcntl.LOCK_SH)
        try:
            return (yield)
        finally:
            # Closing is not enough: a process that was forked meanwhile may have the file open for longer.
            fcntl.flock(lock, fcntl.LOCK_UN)


def runs_alone(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("clock", "gpu"))


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compile into a cache that all workers of this run share, and not into the user's."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PKB_CACHE", str((base.parent if IS_WORKER else base) / "cache"))
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
