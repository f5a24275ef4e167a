"""row: 37
tries: has a system of equations solved, whose solution is the product
problem: 13_gemm_allreduce
nproc: 1
track: scratch
expect: REJECTED vendor-gemm | CHEAT library-call
unscreened: CHEAT library-call
"""

import torch


def solution(A_local, B_local):
    (m, k), n = A_local.shape, B_local.shape[1]
    # [1 0; -A 1] [x; y] = [B; 0] has y = A B.
    matrix = torch.eye(k + m, dtype=A_local.dtype, device=A_local.device)
    matrix[k:, :k] = -A_local
    right = torch.cat([B_local, B_local.new_zeros(m, n)])
    return torch.linalg.solve_triangular(matrix, right, upper=False)[k:].contiguous()
