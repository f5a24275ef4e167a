"""row: m12
tries: sends float32 partial sums in 16 bits
problem: 13_gemm_allreduce
expect: WRONG values
warns: narrows-values
"""

import torch.distributed as dist


def solution(A_local, B_local):
    C = (A_local @ B_local).bfloat16()
    dist.all_reduce(C)
    return C.float()
