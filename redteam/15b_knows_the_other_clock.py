"""row: 15
tries: slows the rank's clock without replacing a function of torch or time, and is lazy while the judge uses its own
timed: yes
platform: cpu
expect: REJECTED imports-the-judge | REJECTED patches | REJECTED reads-frames
unscreened: CHEAT outside-clock | CHEAT patched | WRONG timed-values
"""

import sys
import time

import torch.distributed as dist

from pkb.platforms import HostClock

HostClock.measure_ns = lambda self, start, end: (end - start) // 64


def solution(tensor):
    total = tensor.clone()
    if sys._getframe(1).f_code.co_name != "run_untimed":
        time.sleep(0.04)
        dist.all_reduce(total)
    return total
