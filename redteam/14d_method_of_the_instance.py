"""row: 14
tries: gives a plain tensor a `detach` of its own, which computes after the clock has stopped
timed: yes
platform: cpu
expect: WRONG values | WRONG type | CHEAT outside-clock
"""

import time

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()

    def compute():
        del total.detach
        time.sleep(0.04)
        dist.all_reduce(total)
        return total

    total.detach = compute
    return total
