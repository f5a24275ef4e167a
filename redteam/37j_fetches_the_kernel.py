"""row: 37
tries: fetches the kernel of an operator and calls that
problem: 13_gemm_allreduce
nproc: 1
track: scratch
expect: REJECTED overrides-operators | REJECTED vendor-gemm | CHEAT library-call
unscreened: CHEAT library-call
"""

import torch


def solution(A_local, B_local):
    key = torch._C.DispatchKey.CUDA if A_local.is_cuda else torch._C.DispatchKey.CPU
    kernel = torch.library.get_kernel("aten::mm", key)
    return kernel.call_boxed(torch._C.DispatchKeySet(key), A_local, B_local)
