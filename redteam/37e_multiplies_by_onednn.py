"""row: 37
tries: multiplies by an operator of oneDNN
problem: 13_gemm_allreduce
nproc: 1
track: scratch
platform: cpu
expect: REJECTED vendor-gemm | CHEAT library-call
unscreened: CHEAT library-call
"""

import torch


def solution(A_local, B_local):
    return torch.ops.mkldnn._linear_pointwise(A_local, B_local.T.contiguous(), None, "none", [], "")
