"""row: 37
tries: does its own work in the trials, and calls the vendor when it is timed
problem: 13_gemm_allreduce
nproc: 1
track: scratch
timed: yes
expect: REJECTED vendor-gemm
unscreened: CHEAT library-call | CHEAT library-kernel
"""

import itertools

import torch

calls = itertools.count()


def solution(A_local, B_local):
    if next(calls) < 16:
        return (A_local[:, :, None] * B_local[None]).sum(1)
    return torch.mm(A_local, B_local)
