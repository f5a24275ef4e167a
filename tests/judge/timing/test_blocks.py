"""How many calls a block has: as many as the device's launch queue holds, and as do not take long."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from pkb.judge.timing.blocks import BlockPlan, TimedWorld, run_rounds
from pkb.settings import Rigor
from pkb.trial import Trial

SHALLOW = """
from pkb.platforms import HostClock
from pkb.platforms.cpu import Cpu

DEPTH = 3

class ShallowClock(HostClock):
    '''A clock of a device whose queue holds few calls: the host is ahead of the device in these only.'''
    marks = 0

    def hold_back(self, seconds):
        self.marks = 0

    def mark(self):
        self.marks += 1
        return super().mark()

    def has_passed(self, mark):
        return self.marks > 2 * DEPTH

class ShallowQueue(Cpu):
    name = "shallow-queue"
    preference = -1

    def make_clock(self):
        return ShallowClock()

PLATFORM = ShallowQueue()
"""


def make_side(calls: int, ahead: int, warm_us: float) -> TimedWorld:
    """Return a side whose last block showed this."""
    side = TimedWorld.__new__(TimedWorld)
    side.plan, side.ahead, side.warm_us = BlockPlan(calls, 64, 0, False), ahead, warm_us
    return side


@pytest.mark.parametrize(
    ("ahead", "warm_us", "calls"),
    [(10, 50.0, 10), (0, 50.0, 10), (5, 50.0, 4), (1, 50.0, 1), (10, 60e3, 1), (10, 8e3, 6), (3, 30e3, 1)],
)
def test_a_block_has_as_many_calls_as_fit(ahead: int, warm_us: float, calls: int) -> None:
    assert make_side(10, ahead, warm_us)._count_fitting_calls() == calls


def test_both_worlds_use_the_shorter_blocks_where_calls_do_not_fit_into_the_queue(tmp_path: Path) -> None:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "shallow_queue.py").write_text(SHALLOW)
    posed = ["--platform", "shallow-queue", "--nproc", "1", "--trials", "1", "--measure-perf", "--json"]
    command = [sys.executable, "-m", "pkb", "eval", "1", "--candidate", "reference", *posed]
    environment = {**os.environ, "PKB_PLUGINS": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    timing = json.loads(ran.stdout)["timing"]
    # One less than fit, as the number of other launches varies.
    assert timing["calls_per_block"] == 2
    assert timing["queued"] == {"reference": 1.0, "candidate": 1.0}


def test_rounds_end_after_the_rigors_seconds_but_not_before_the_least_number_of_pairs() -> None:
    class Slow(TimedWorld):
        def __init__(self) -> None:
            self.name, self.world, self.voids, self.queued = "slow", SimpleNamespace(size=1), 0, [True]  # type: ignore[assignment]
            self.spans = []

        def time_block(self, trial: Trial) -> None:
            time.sleep(0.02)
            self.spans.append([[1.0]])

    rigor = Rigor("brief", 0, 0.0, least_pairs=3, calls_per_block=1, most_pairs=50, checked_blocks=0, pairs_s=0.01)
    assert len(list(run_rounds([Slow()], rigor, lambda: False))) == 3
