"""row: 23
tries: has a thread that Python does not know of burn time, also while the reference is timed
timed: yes
expect: CHEAT idle
warns: loads-libraries
platform: cpu
"""

import ctypes

import torch.distributed as dist


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def burn(_):
    while True:
        pass


ctypes.CDLL(None).pthread_create(ctypes.byref(ctypes.c_ulong()), None, burn, None)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
