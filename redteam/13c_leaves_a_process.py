"""row: 13
tries: leaves a process behind that goes on after the last call
expect: REJECTED starts-processes
unscreened: CHEAT left-process
"""

import os
import time

import torch.distributed as dist

if os.fork() == 0:
    time.sleep(600)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
