"""Note vendors' libraries that a candidate loads by hand, and processes that it forks."""

import re
import sys
from pathlib import Path
from typing import Any

from pkb.rank.observers import Note

_VENDORS = re.compile(
    r"^lib(?:scipy_)?(blas|cblas|openblas|blis|flame|lapack|lapacke|mkl|dnnl|mkldnn|armpl|fftw|gsl|nccl|rccl|gloo|ucc|ucp|mpi|"
    r"nvshmem|cublas|cudnn|cufft|cusolver|cusparse|cutensor|nvpl|rocblas|hipblas|miopen|magma|nnpack|xnnpack)"
)
"""File names of shared libraries that multiply or communicate."""
_MODULES = {
    *("cupy", "jax", "jaxlib", "tensorflow", "mpi4py", "sklearn", "nvmath", "mkl", "torchao", "xformers", "flash_attn"),
    *("deep_gemm", "flashinfer", "scipy.linalg", "scipy.fft", "scipy.fftpack", "scipy.signal", "scipy.sparse"),
}
_FUNCTIONS = re.compile(
    r"gemm|gemv|(sy|he)(mm|rk|r2k)_?$|tr[sm]m_?$|^(cblas|lapacke|dnnl|mkl|cublas|cudnn|nccl|mpi)|aoti_torch|^_ZN",
    re.IGNORECASE,
)
"""Functions, by name, that are in torch's own libraries: products, and everything of C++."""


class LoadedLibraries:
    """Notes, from now on and for as long as the process lives, what is loaded by hand."""

    def __init__(self, note: Note):
        self.note = note
        self._before = _list_mapped_files()
        sys.addaudithook(self._hear)

    def note_mapped_files(self) -> None:
        """Note libraries that native code has loaded."""
        for name in _list_mapped_files() - self._before:
            self._note_library(name)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "ctypes.dlopen":
            self._note_library(str(args[0] or ""))
        elif event in ("ctypes.dlsym", "ctypes.dlsym/handle"):
            self._note_function(getattr(args[0], "_name", None), str(args[1]))
        elif event == "import" and args[0] in _MODULES:
            self.note(f"library.{args[0]}")
        elif event in ("os.fork", "os.forkpty"):
            self.note(f"library.{event}")

    def _note_library(self, path: str) -> None:
        name = path.rpartition("/")[2]
        if _VENDORS.match(name):
            self.note(f"library.{name}")

    def _note_function(self, library: str | None, function: str) -> None:
        name = (library or "").rpartition("/")[2]
        if (not name or name.startswith(("libtorch", "libc10"))) and _FUNCTIONS.search(function):
            self.note(f"library.{function}")


def _list_mapped_files() -> set[str]:
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return set()
    return {line.rpartition("/")[2] for line in lines if ".so" in line}
