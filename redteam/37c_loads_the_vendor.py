"""row: 37
tries: calls the vendor's library by hand, past torch, where the product should be its own work
problem: 13_gemm_allreduce
nproc: 1
track: scratch
platform: gpu
expect: REJECTED vendor-gemm
unscreened: CHEAT library-call | CHEAT library-kernel
"""

import ctypes

import torch

# Torch has loaded it already.
blas = ctypes.CDLL(f"libcublas.so.{torch.version.cuda.partition('.')[0]}")
handle = ctypes.c_void_p()
assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0


def address(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def solution(A_local, B_local):
    (m, k), n = A_local.shape, B_local.shape[1]
    out = A_local.new_empty(m, n)
    one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
    assert blas.cublasSetStream_v2(handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)) == 0
    # Its matrices go by columns: this is the product of the transposed ones, in the other order.
    operands = ctypes.byref(one), address(B_local), n, address(A_local), k, ctypes.byref(zero), address(out), n
    assert blas.cublasSgemm_v2(handle, 0, 0, n, m, k, *operands) == 0
    return out
