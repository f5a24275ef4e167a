"""The command that runs beside the ranks."""

import os
import time

import pytest

from pkb.nursery.mps import Service
from pkb.sandbox.processes import list_children


def test_it_is_waited_for_only_when_someone_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkb.nursery.mps._START_S", 2.0)
    service = Service(["sleep", "60"])
    first = service.process
    assert first is not None
    up_at = service._up_at
    assert time.monotonic() < up_at
    service.wait_until_up()
    assert time.monotonic() >= up_at
    assert first.poll() is None
    service.restart()
    assert first.wait(5) != 0
    second = service.process
    assert second is not None
    service.stop()
    assert second.wait(5) != 0
    assert service.pid is None


def test_where_none_is_needed_nobody_waits() -> None:
    before = set(list_children(os.getpid()))
    service = Service([])
    service.wait_until_up()
    assert set(list_children(os.getpid())) == before
