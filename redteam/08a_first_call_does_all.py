"""row: 8
tries: in the first call of a block computes those to come, which then cost nothing
timed: yes
platform: cpu
expect: REJECTED searches-memory
unscreened: CHEAT outside-clock
"""

import gc
import time

import torch.distributed as dist

rank = seen = None
done = []


def compute(tensor):
    time.sleep(0.04)
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def solution(tensor):
    global rank, seen
    rank = rank or next(found for found in gc.get_objects() if type(found).__name__ == "Rank")
    if rank.calls is not seen:
        seen = rank.calls
        done[:] = [(call.args[0], compute(call.args[0])) for call in seen]
    return next(total.clone() for known, total in done if known is tensor)
