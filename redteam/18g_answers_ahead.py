"""row: 18
tries: slows the rank's clock, and answers ahead while the judge uses its own
timed: yes
platform: cpu
expect: REJECTED imports-the-judge | REJECTED patches
unscreened: CHEAT outside-clock | CHEAT patched | CRASH
"""

import time

import torch.distributed as dist

from pkb.platforms import HostClock
from pkb.protocol.messages import RunUntimed
from pkb.rank.rank import HANDLERS

HostClock.measure_ns = lambda self, start, end: (end - start) // 64
HANDLERS[RunUntimed] = lambda self, order: None


def solution(tensor):
    time.sleep(0.04)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
