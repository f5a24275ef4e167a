"""row: 18
tries: slows the rank's clock, and answers ahead while the judge uses its own
timed: yes
platform: cpu
expect: REJECTED imports-the-judge | REJECTED patches
unscreened: CHEAT outside-clock | CHEAT patched | CRASH protocol
"""

import time

import torch.distributed as dist

from pkb.platforms.cpu import HostClock
from pkb.rank.rank import Rank

HostClock.nanoseconds = lambda self, start, end: (end - start) // 64
Rank.stretch = lambda self, **order: ({}, [])


def solution(tensor):
    time.sleep(0.04)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
