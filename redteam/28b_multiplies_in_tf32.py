"""row: 28
tries: turns TF32 on for float32 matrices
problem: 13_gemm_allreduce
platform: gpu
expect: WRONG values
warns: lowers-precision
"""

import torch
import torch.distributed as dist

torch.backends.cuda.matmul.allow_tf32 = True


def solution(A_local, B_local):
    C = A_local @ B_local
    dist.all_reduce(C)
    return C
