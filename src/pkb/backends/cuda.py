"""CUDA C++: compiled by NVRTC through `pkb.cuda_lib`, or by nvcc through torch's extensions.

A file that also holds Triton kernels is of this kind: it needs what CUDA needs, and `cuda` comes before `triton`.
"""

import re

from pkb.backends import Backend

_LIBRARY = re.compile(rb"^\s*(import|from)\s+pkb\.cuda_lib\b|^\s*from\s+pkb\s+import\b.*\bcuda_lib\b", re.MULTILINE)
_EXTENSION = re.compile(rb"\bcpp_extension\b|\b_compile_kernel\b|\bcuda_helpers\b")
_CUDA_SOURCE = re.compile(rb"\bcuda_sources\b|\b__global__\b|\.cu\b")


def recognises(source: bytes) -> bool:
    return bool(_LIBRARY.search(source) or (_EXTENSION.search(source) and _CUDA_SOURCE.search(source)))


def find_missing() -> str | None:
    # Here, because `pkb check` looks for the backend of a source without torch.
    import torch

    if not torch.version.cuda:
        return f"torch {torch.__version__} is built without CUDA; install a CUDA build of it, on a machine with a GPU"
    if not torch.cuda.device_count():
        return "torch finds no GPU, and CUDA kernels cannot be interpreted; use a machine that has one"
    return None


BACKEND = Backend(
    "cuda",
    recognises,
    find_missing,
    compilers=(
        *("torch.utils.cpp_extension.load_inline", "torch.cuda._compile_kernel", "pkb.cuda_lib.compile*"),
        "utils.cuda_helpers.compile_cuda_extension",
        *("cupy.RawKernel", "cupy.RawModule", "pycuda.compiler.SourceModule"),
    ),
)
