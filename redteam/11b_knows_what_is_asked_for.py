"""row: 11
tries: works in the first call of a timed block only, and has its result handed over whichever one is asked for
timed: yes
expect: REJECTED reads-frames
unscreened: WRONG timed-values | CHEAT outside-clock
"""

import sys

import torch.distributed as dist


class Kept(list):
    def __getitem__(self, call):
        return super().__getitem__(0)


def solution(tensor):
    caller = sys._getframe(1)
    total = tensor.clone()
    if caller.f_code.co_name != "time_block":
        dist.all_reduce(total)
        return total
    stopwatch = caller.f_locals["self"]
    if not stopwatch.kept:
        stopwatch.kept = Kept()
        dist.all_reduce(total)
    return total
