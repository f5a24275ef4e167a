"""Work that a call hands to another thread and does not wait for is found in every call, however small it is."""

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, ProblemSettings

CALLS = 50
HANDS_OVER = {
    "thread": "threading.Thread(target=work).start()",
    "subclass": "Own(work).start()",
    "low-level": "_thread.start_new_thread(work, ())",
    "executor": "pool.submit(work)",
    "queue": "jobs.put(work)",
    "simple-queue": "more_jobs.put(work)",
    "event-loop": "asyncio.run_coroutine_threadsafe(asyncio.to_thread(work), loop)",
}
HEAD = """
import _thread, asyncio, queue, threading
from concurrent.futures import ThreadPoolExecutor
import torch
import torch.distributed as dist
from torch import nn

pool, jobs, more_jobs, loop = ThreadPoolExecutor(1), queue.Queue(), queue.SimpleQueue(), asyncio.new_event_loop()

class Own(threading.Thread):
    def __init__(self, work):
        super().__init__()
        self.run = work

def serve(own):
    while True:
        own.get()()

for target in (lambda: serve(jobs), lambda: serve(more_jobs), loop.run_forever):
    threading.Thread(target=target, daemon=True).start()
"""
ALONE = """
class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        def work():
            out.copy_(torch.relu(x))
        {hand_over}
        return out
"""
TOGETHER = """
def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    out = torch.empty_like(tensor)
    def work():
        out.copy_(total)
    {hand_over}
    return out
"""
JOINED = {
    "thread": "thread = threading.Thread(target=work); thread.start(); thread.join()",
    "executor": "pool.submit(work).result()",
    "event-loop": "asyncio.run_coroutine_threadsafe(asyncio.to_thread(work), loop).result()",
}


def run(judge: Judge, problem: str, source: str, ranks: int, calls: int) -> Record:
    setup = judge.pose(problem, ProblemSettings(nproc=ranks, trials=1, calls=calls))
    return judge.judge(setup, Candidate.of((HEAD + source).encode()), JudgementSettings())


@pytest.mark.parametrize("way", HANDS_OVER)
@pytest.mark.parametrize(("problem", "source", "ranks"), [("L1/19", ALONE, 1), ("1_allreduce", TOGETHER, 2)])
def test_every_call_that_does_not_wait_is_wrong(judge: Judge, problem: str, source: str, ranks: int, way: str) -> None:
    record = run(judge, problem, source.format(hand_over=HANDS_OVER[way]), ranks, CALLS)
    assert (record.verdict, record.evidence.check) == (Verdict.WRONG, "values"), record.reason
    # One call is enough for a verdict, and a judgement has 15 or more; on a busy machine a rank may sleep through a
    # delay.
    assert len(record.evidence.details["wrong_at"]) > 0.9 * CALLS * ranks


@pytest.mark.parametrize("way", JOINED)
@pytest.mark.parametrize(("problem", "source", "ranks"), [("L1/19", ALONE, 1), ("1_allreduce", TOGETHER, 2)])
def test_calls_that_wait_for_their_threads_are_right(
    judge: Judge, problem: str, source: str, ranks: int, way: str
) -> None:
    """Also if threads that are idle stay for the next call."""
    record = run(judge, problem, source.format(hand_over=JOINED[way]), ranks, 3)
    assert record.verdict is Verdict.CORRECT, record.reason
