"""A rank that does not read what it is sent is a HANG, and holds nobody up for longer than the limit."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from pkb.failure import Failure
from pkb.judge.judge import Judge
from pkb.judge.worlds.world import World
from pkb.problems.suite import load_problem
from pkb.protocol.messages import LoadSolution, RunCalls
from pkb.record import Verdict

STOPS = """
import os, signal, threading
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGSTOP)).start()

def solution(tensor):
    return tensor
"""


@pytest.fixture
def stopped(judge: Judge) -> Iterator[World]:
    """Yield a world whose ranks have stopped themselves."""
    with World(judge.nursery, 2, replace(judge.limits, trial_s=1.0)) as world:
        world.start()
        file = world.folder / "candidate.py"
        file.write_text(STOPS)
        problem = shutil.copy(load_problem("allreduce").path, world.folder)
        world.ask(LoadSolution(str(problem), str(file)), "load", 30)
        time.sleep(0.5)
        yield world


@pytest.mark.parametrize("tensors", [[torch.zeros(1 << 24)], [torch.zeros(1 << 10)] * 4000], ids=["large", "many"])
def test_what_is_not_read_ends_in_a_hang(stopped: World, tensors: list[torch.Tensor]) -> None:
    start = time.monotonic()
    with pytest.raises(Failure, match="rank 0 did not finish reading what the judge sent within 1 s") as failure:
        stopped.send(RunCalls(), [tensors, tensors])
    assert failure.value.verdict is Verdict.HANG
    assert time.monotonic() - start < 5


def test_ranks_that_do_not_read_are_ended_all_the_same(stopped: World) -> None:
    with pytest.raises(Failure):
        stopped.send(RunCalls(), [[torch.zeros(1 << 24)]] * 2)
    start = time.monotonic()
    stopped.leave()
    assert stopped.end() == []
    assert time.monotonic() - start < 5
    assert not stopped.folder.exists()


def test_ranks_that_use_up_every_deadline_run_out_of_time(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkb.settings._LEAST_TOTAL_S", 0.0)
    monkeypatch.setattr("pkb.settings._TRIALS_IN_TOTAL", 0.01)
    with World(judge.nursery, 1, replace(judge.limits, trial_s=1.0)) as world:
        world.start()
        with pytest.raises(Failure, match=r"more than 0.01 s in all before the end of its calls") as failure:
            release_often(world)
    assert (failure.value.verdict, failure.value.evidence.check) == (Verdict.HANG, "total-time")


def release_often(world: World) -> None:
    for _ in range(1000):
        world.release_memory()
