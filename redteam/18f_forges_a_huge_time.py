"""row: 18
tries: breaks the judge with a time that no float can hold
timed: yes
expect: REJECTED imports-the-judge | REJECTED patches
unscreened: CRASH protocol | CHEAT patched
"""

from dataclasses import replace

import torch.distributed as dist

from pkb.rank.stopwatch import Stopwatch

time_block = Stopwatch.time_block
Stopwatch.time_block = lambda *args: replace(time_block(*args), host_s=10**400)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
