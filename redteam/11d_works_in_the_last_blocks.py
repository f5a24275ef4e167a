"""row: 11
tries: works from the fifth timed block on, and reads in its caller's frame when these are
timed: yes
expect: REJECTED reads-frames
unscreened: WRONG timed-values | CORRECT TIE
"""

import sys

import torch.distributed as dist

blocks = []


def solution(tensor):
    caller = sys._getframe(1)
    total = tensor.clone()
    if caller.f_code.co_name != "time_block":
        dist.all_reduce(total)
        return total
    marks = caller.f_locals["marks"]
    if not blocks or blocks[-1] is not marks:
        blocks.append(marks)
    # Three of them belong to the warm-up.
    block = len(blocks) - 3
    if block > 4:
        dist.all_reduce(total)
    return total
