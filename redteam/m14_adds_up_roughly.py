"""row: m14
tries: rounds after every step of a long sum, and calls the error one of order
problem: 13_gemm_allreduce
dtype: bfloat16
expect: WRONG values
"""

import torch.distributed as dist


def solution(A_local, B_local):
    C = A_local.new_zeros(A_local.shape[0], B_local.shape[1])
    for k in range(A_local.shape[1]):
        C += A_local[:, k : k + 1] * B_local[k : k + 1]
    dist.all_reduce(C)
    return C
