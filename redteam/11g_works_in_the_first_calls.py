"""row: 11
tries: works in the first call of each timed block only, and reads in its caller's frame when these are
timed: yes
expect: REJECTED reads-frames
unscreened: WRONG timed-values
"""

import sys

import torch.distributed as dist


def solution(tensor):
    caller = sys._getframe(1)
    total = tensor.clone()
    if caller.f_code.co_name != "time_block":
        dist.all_reduce(total)
        return total
    if not caller.f_locals["marks"]:
        dist.all_reduce(total)
    return total
