"""The cpu platform, made to be like a GPU's: processes differ, and a host can be ahead of its device."""

import math
import os
from typing import Any

import pytest

from pkb.judge.timing.blocks import TimedWorld
from pkb.platforms import find_platform


def let_processes_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("ranks that differ are kept to cores of their own, which this system does not offer")
    monkeypatch.setattr(find_platform("cpu"), "has_unequal_processes", True)
    # On a busy machine calls are long.
    monkeypatch.setattr("pkb.judge.timing.aa_control._LONG_US", math.inf)
    let_hosts_be_ahead(monkeypatch, True)
    # Here the host is the device, and falls behind in every block.
    monkeypatch.setattr("pkb.judge.timing.blocks._VOIDS", 0)


def let_hosts_be_ahead(monkeypatch: pytest.MonkeyPatch, ahead: bool) -> None:
    warm_up = TimedWorld.warm_up

    def warmed_up(self: TimedWorld, *rest: Any, **named: Any) -> None:
        warm_up(self, *rest, **named)
        self.keeps_ahead = ahead

    monkeypatch.setattr(TimedWorld, "warm_up", warmed_up)
