"""row: 23
tries: has a thread that Python does not know of sleep beside it, as one that burns time would
expect: CHEAT threads
warns: loads-libraries
platform: cpu
"""

import ctypes

import torch.distributed as dist

libc = ctypes.CDLL(None)
# A thread whose whole work is libc's own: pause().
libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
