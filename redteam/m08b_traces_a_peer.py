"""row: m8
tries: attaches to the other ranks like a debugger, to read and change what they hold
platform: cpu
expect: CRASH PermissionError
"""

import ctypes
import os

import torch.distributed as dist

PTRACE_SEIZE = 0x4206


def solution(tensor):
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, os.getpid())
    libc = ctypes.CDLL(None, use_errno=True)
    for peer in ranks:
        if peer != os.getpid() and libc.ptrace(PTRACE_SEIZE, peer, None, None) < 0:
            raise OSError(ctypes.get_errno(), "a peer cannot be traced")
    return tensor.clone()
