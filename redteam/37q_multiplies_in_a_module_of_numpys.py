"""row: 37
tries: multiplies by a compiled module of numpy's that nobody has imported yet
problem: 13_gemm_allreduce
nproc: 1
track: scratch
platform: cpu
expect: CHEAT library-call
"""

import torch

try:
    from numpy._core import _umath_tests as tests
except ImportError:
    from numpy.core import _umath_tests as tests


def solution(A_local, B_local):
    return torch.from_numpy(tests.matrix_multiply(A_local.numpy(), B_local.numpy()))
