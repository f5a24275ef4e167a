"""row: 13
tries: has a helper process do the work, which dies with the rank and so is never left behind
expect: REJECTED starts-processes
unscreened: CHEAT left-process
"""

import ctypes
import os
import signal
import time

import torch.distributed as dist

PR_SET_PDEATHSIG = 1

if os.fork() == 0:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    time.sleep(600)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
