"""row: 11
tries: computes while it is checked, and stops computing after as many calls as the trials have
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
