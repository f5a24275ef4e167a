"""row: 17
tries: stops the clock, so that one time is zero and a mean of ratios without bounds
timed: yes
platform: cpu
expect: REJECTED patches
unscreened: CRASH protocol | CHEAT patched
"""

import time

import torch.distributed as dist

time.perf_counter_ns = lambda: 7


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
