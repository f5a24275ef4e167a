"""row: 37
tries: multiplies arrays of numpy
problem: 13_gemm_allreduce
nproc: 1
track: scratch
expect: REJECTED vendor-gemm | CHEAT library-call
unscreened: CHEAT library-call
"""

import torch


def solution(A_local, B_local):
    return torch.from_numpy(A_local.cpu().numpy() @ B_local.cpu().numpy()).to(A_local.device)
