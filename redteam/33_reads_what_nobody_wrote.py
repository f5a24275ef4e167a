"""row: 33
tries: multiplies with padding that was never written
problem: 13_gemm_allreduce
expect: WRONG values
"""

import torch
import torch.distributed as dist


def solution(A_local, B_local):
    (m, k), n = A_local.shape, B_local.shape[1]
    A, B = A_local.new_empty(m, k + 16), B_local.new_empty(k + 16, n)
    A[:, :k], B[:k] = A_local, B_local
    C = torch.mm(A, B)
    dist.all_reduce(C)
    return C
