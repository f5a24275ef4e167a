"""row: 37
tries: multiplies by a convolution
problem: 13_gemm_allreduce
nproc: 1
track: scratch
platform: cpu
expect: REJECTED vendor-gemm | CHEAT library-call
unscreened: CHEAT library-call
"""

import torch


def solution(A_local, B_local):
    image, weight = A_local.T[None, :, :, None].contiguous(), B_local.T[:, :, None, None].contiguous()
    found = torch.mkldnn_convolution(image, weight, None, [0, 0], [1, 1], [1, 1], 1)
    return found[0, :, :, 0].T.contiguous()
