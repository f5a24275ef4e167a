"""row: 37
tries: calls the product that torch is linked with by its address
problem: 13_gemm_allreduce
nproc: 1
track: scratch
platform: cpu
machine: x86_64
expect: REJECTED vendor-gemm | CHEAT library-call
unscreened: CHEAT library-call
"""

import ctypes
from pathlib import Path

import torch

library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


def solution(A_local, B_local):
    (m, k), n = A_local.shape, B_local.shape[1]
    out = A_local.new_empty(m, n)
    sizes = [ctypes.byref(ctypes.c_int(size)) for size in (n, m, k)]
    one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (B_local, A_local, out)]
    columns, _, inner = sizes
    library.sgemm_(b"N", b"N", *sizes, one, pointers[0], columns, pointers[1], inner, zero, pointers[2], columns)
    return out
