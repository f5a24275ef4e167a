"""What a candidate may do while others are timed."""

import os
import sys
import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from helpers.unequal import let_processes_differ
from pkb.candidate import Candidate
from pkb.failure import Failure
from pkb.judge.judge import Judge
from pkb.judge.timing.idle_check import IdleCheck
from pkb.judge.worlds.world import World
from pkb.record import Verdict
from pkb.sandbox.processes import read_cpu_usage
from pkb.settings import JudgementSettings, ProblemSettings, Rigor

pytestmark = pytest.mark.clock

RIGOR = Rigor("some", 2, 1.0, least_pairs=6, calls_per_block=50, most_pairs=6, checked_blocks=1)
# A thread that Python does not list: at work for a seventh of the time, which by itself nobody would mind.
NAGS = b"""
import _thread, time
import torch.distributed as dist

def nag():
    while True:
        end = time.thread_time() + 0.006
        while time.thread_time() < end:
            pass
        time.sleep(0.036)

_thread.start_new_thread(nag, ())

def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""

# Who calls tells it that blocks are over, and the judge's own clock has its turn.
STARTS_LATE = b"""
import _thread, sys, time
import torch.distributed as dist

burning = []

def burn():
    end = time.monotonic() + 20
    while time.monotonic() < end:
        pass

def solution(tensor):
    frame = sys._getframe()
    while frame.f_back and frame.f_code.co_name != "run_untimed":
        frame = frame.f_back
    if frame.f_back and not burning:
        burning.append(_thread.start_new_thread(burn, ()))
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what another process has used")


def scripted(unequal: bool, *usages: Sequence[tuple[float, float]]) -> World:
    """A world whose ranks are said to have used, and waited for, so much."""
    coming = iter(usages)
    nursery = SimpleNamespace(platform=SimpleNamespace(has_unequal_processes=unequal))
    usage = lambda: np.array(next(coming))  # noqa: E731
    return cast("World", SimpleNamespace(measure_usage=usage, nursery=nursery, size=len(usages[0])))


@pytest.mark.parametrize(
    ("unequal", "used", "waited", "minded"),
    [
        (False, [0.10], [0.50], False),
        (False, [0.20], [0.00], True),
        (True, [0.10], [0.00], False),
        (True, [0.10], [0.50], True),
        (True, [0.05], [0.50], False),
        (True, [0.07, 0.07], [0.00, 0.00], False),
        (True, [0.10, 0.00], [0.00, 0.50], False),
        (True, [0.10, 0.00, 0.00, 0.00], [0.50, 0.00, 0.00, 0.00], True),
    ],
)
def test_how_much_is_minded(
    monkeypatch: pytest.MonkeyPatch, unequal: bool, used: list[float], waited: list[float], minded: bool
) -> None:
    """In a second, by rank."""
    clock = SimpleNamespace(perf_counter=iter([5.0, 6.0]).__next__)
    monkeypatch.setattr("pkb.judge.timing.idle_check.time", clock)
    idle = IdleCheck(scripted(unequal, [(7.0, 0.0) for _ in used], [(7.0 + s, 0.0) for s in used]))
    with idle.watch(scripted(unequal, [(0.0, 3.0) for _ in used], [(0.0, 3.0 + s) for s in waited])):
        pass
    if minded:
        with pytest.raises(Failure) as found:
            idle.check()
        assert found.value.evidence.check == "idle"
    else:
        idle.check()


@linux
def test_threads_that_have_ended_count() -> None:
    start = read_cpu_usage(os.getpid())[0]
    threads = [threading.Thread(target=burn, args=(0.05,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_cpu_usage(os.getpid())[0] - start > 0.19


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@linux
def test_a_candidate_that_is_at_work_while_the_judges_clock_runs_for_the_reference_is_found(judge: Judge) -> None:
    record = judge.judge(
        judge.pose("allreduce", ProblemSettings(nproc=1, size="paper", trials=1)),
        Candidate.of(STARTS_LATE),
        JudgementSettings(rigor=RIGOR, screen=False),
    )
    assert (record.verdict, record.evidence.check) == (Verdict.CHEAT, "idle"), record.reason


def test_who_takes_the_core_on_which_the_reference_is_timed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    let_processes_differ(monkeypatch)
    with Judge("cpu") as judge:
        setup = judge.pose("allreduce", ProblemSettings(nproc=1, size="paper", trials=1))
        record = judge.judge(setup, Candidate.of(NAGS), JudgementSettings(rigor=RIGOR, screen=False))
    assert (record.verdict, record.evidence.check) == (Verdict.CHEAT, "idle"), record.reason
    assert record.evidence.details["others_waited_s"][0] > 0.05 * record.evidence.details["seconds"]
