"""What a candidate may do while others are timed."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pkb.candidate import Candidate
from pkb.judge import Judge
from pkb.judge.failure import Failure
from pkb.judge.idleness import Idleness
from pkb.judge.rigor import Rigor
from pkb.judge.world import World
from pkb.record import Verdict
from unequal import let_processes_differ

RIGOR = Rigor("some", 2, 1.0, calls=300, calls_per_block=50, most_pairs=6, checked_blocks=1)
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


def scripted(usage: Iterator[tuple[float, float]], unequal: bool, size: int) -> World:
    nursery = SimpleNamespace(platform=SimpleNamespace(unequal=unequal))
    return cast("World", SimpleNamespace(usage=lambda: next(usage), nursery=nursery, size=size))


@pytest.mark.parametrize(
    ("unequal", "size", "used", "waited", "minded"),
    [
        (False, 1, 0.10, 0.50, False),
        (False, 1, 0.20, 0.00, True),
        (True, 1, 0.10, 0.00, False),
        (True, 1, 0.10, 0.50, True),
        (True, 1, 0.04, 0.50, False),
        (True, 2, 0.10, 0.50, False),
        (True, 2, 0.14, 0.50, True),
    ],
)
def test_how_much_is_minded(
    monkeypatch: pytest.MonkeyPatch, unequal: bool, size: int, used: float, waited: float, minded: bool
) -> None:
    """In a second."""
    monkeypatch.setattr("time.perf_counter", iter([5.0, 6.0]).__next__)
    idle = Idleness(scripted(iter([(7.0, 0.0), (7.0 + used, 0.0)]), unequal, size))
    with idle.watched(scripted(iter([(0.0, 3.0), (0.0, 3.0 + waited)]), unequal, size)):
        pass
    if minded:
        with pytest.raises(Failure) as found:
            idle.check()
        assert found.value.evidence["check"] == "idle"
    else:
        idle.check()


def test_who_takes_the_core_on_which_the_reference_is_timed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    let_processes_differ(monkeypatch)
    with Judge("cpu") as judge:
        setup: Any = judge.pose("allreduce", nproc=1, size="paper", trials=1)
        record = judge.judge(setup, Candidate.of(NAGS), rigor=RIGOR, screen=False)
    assert (record.verdict, record.evidence.get("check")) == (Verdict.CHEAT, "idle"), record.reason
    assert record.evidence["others_waited_s"] > 0.05 * record.evidence["seconds"]
