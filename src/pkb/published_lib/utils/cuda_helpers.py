"""Compile CUDA C++ as candidates of the public ParallelKernelBench ask for it."""

from typing import Any

import torch
from torch.utils import cpp_extension


def compile_cuda_extension(
    name: str,
    cuda_src: str,
    extra_cuda_cflags: list[str] | None = None,
    extra_include_paths: list[str] | None = None,
    extra_ldflags: list[str] | None = None,
) -> Any:
    """Return the module that a source compiles to, which binds its functions itself. Optimised; the flags are added."""
    if lacking := _find_missing():
        raise RuntimeError(f"the extension {name!r} cannot be compiled: {lacking}")
    # Looked up now: a rank has put a loader in its place, which finds what was compiled before the rank started.
    return cpp_extension.load_inline(
        name=name,
        cpp_sources="",
        cuda_sources=cuda_src,
        extra_cuda_cflags=["-O3", *(extra_cuda_cflags or [])],
        extra_include_paths=[*(extra_include_paths or [])],
        extra_ldflags=[*(extra_ldflags or [])],
        with_cuda=True,
    )


def _find_missing() -> str | None:
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA; install a CUDA build of it"
    if cpp_extension.CUDA_HOME is None:
        return "no CUDA toolkit is found; install one that has nvcc, and set CUDA_HOME or put nvcc on the PATH"
    return None
