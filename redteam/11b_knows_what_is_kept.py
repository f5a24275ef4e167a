"""row: 11
tries: reads in its caller's frame from which call on results are kept, and is lazy before
timed: yes
expect: REJECTED reads-frames
unscreened: WRONG timed-values
"""

import sys

import torch.distributed as dist


def solution(tensor):
    caller = sys._getframe(1)
    total = tensor.clone()
    if caller.f_code.co_name != "run_untimed" and caller.f_locals.get("k", 0) >= caller.f_locals.get("keep_from", 0):
        dist.all_reduce(total)
    return total
