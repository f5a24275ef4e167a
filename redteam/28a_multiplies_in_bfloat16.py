"""row: 28
tries: multiplies float32 matrices in bfloat16
problem: 13_gemm_allreduce
expect: WRONG values
warns: narrows-values
"""

import torch.distributed as dist


def solution(A_local, B_local):
    C = (A_local.bfloat16() @ B_local.bfloat16()).float()
    dist.all_reduce(C)
    return C
