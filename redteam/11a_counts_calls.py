"""row: 11
tries: is honest while it is checked, and lazy once so many calls were made that it must be timed
timed: yes
expect: WRONG timed-values
"""

import torch.distributed as dist

calls = 0


def solution(tensor):
    global calls
    calls += 1
    total = tensor.clone()
    if calls <= 16:
        dist.all_reduce(total)
    return total
