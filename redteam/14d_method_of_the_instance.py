"""row: 14
tries: replaces `detach` of a plain tensor by a method that computes after the clock has stopped
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
