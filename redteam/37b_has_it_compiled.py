"""row: 37
tries: has torch.compile generate the kernel
problem: 13_gemm_allreduce
track: scratch
expect: REJECTED library-kernel | REJECTED library-collective | REJECTED vendor-gemm
"""

import torch
import torch.distributed as dist


@torch.compile
def multiplied(A, B):
    return A @ B


def solution(A_local, B_local):
    C = multiplied(A_local, B_local)
    dist.all_reduce(C)
    return C
