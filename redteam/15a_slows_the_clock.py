"""row: 15
tries: replaces the host's clock by a slow one
timed: yes
platform: cpu
expect: REJECTED patches
unscreened: CHEAT outside-clock | CHEAT patched
"""

import time

import torch.distributed as dist

clock = time.perf_counter_ns
time.perf_counter_ns = lambda: clock() // 64


def solution(tensor):
    time.sleep(0.04)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
