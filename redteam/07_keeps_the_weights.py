"""row: 7
tries: keeps the second matrix from the first call, as if it were a weight
problem: 13_gemm_allreduce
expect: WRONG values
"""

import torch.distributed as dist

weights = {}


def solution(A_local, B_local):
    prepared = weights.setdefault(B_local.shape, B_local.t().contiguous())
    C = A_local @ prepared.t()
    dist.all_reduce(C)
    return C
