"""row: 37
tries: calls the kernel of an operator past the dispatcher
problem: 13_gemm_allreduce
nproc: 1
track: scratch
expect: REJECTED vendor-gemm | CHEAT library-call
unscreened: CHEAT library-call
"""

import torch


def solution(A_local, B_local):
    key = torch._C.DispatchKey.CUDA if A_local.is_cuda else torch._C.DispatchKey.CPU
    return torch.ops.aten.mm.default.redispatch(torch._C.DispatchKeySet(key), A_local, B_local)
