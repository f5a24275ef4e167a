"""Note libraries that a candidate loads by hand, what it calls in them, and processes that it forks."""

import importlib.machinery
import mmap
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pkb.rank.observers import Note
from pkb.rank.observers.native_calls import LOADER, NativeCalls
from pkb.rank.observers.outside_work import OutsideWork

_VENDORS = re.compile(
    r"^lib(?:scipy_)?(blas|cblas|openblas|blis|flame|lapack|lapacke|mkl|dnnl|mkldnn|armpl|fftw|gsl|nccl|rccl|gloo|ucc|ucp|ucx|"
    r"uct|ucs|mpi|nvshmem|cublas|cudnn|cufft|cusolver|cusparse|cutensor|nvpl|rocblas|hipblas|miopen|magma|nnpack|xnnpack)"
)
"""File names of shared libraries that multiply or communicate."""
_SYSTEM = re.compile(
    r"(ld-linux|linux-vdso|libc|libm|libpthread|libdl|librt|libutil|libgcc_s|libstdc\+\+|libffi|libpython3|_ctypes"
    r"|libcuda|libcudart|libnvrtc|libnvrtc-builtins|libnvJitLink|libnvidia-ml|libcute_dsl_runtime)[.-]"
)
"""File names of libraries of the system and of CUDA: what a kernel may load and call itself."""
_WRITABLE = ("/tmp", "/var/tmp", "/dev/shm")
_MODULES = {
    *("cupy", "jax", "jaxlib", "tensorflow", "mpi4py", "sklearn", "nvmath", "mkl", "torchao", "xformers", "flash_attn"),
    *("deep_gemm", "flashinfer", "scipy.linalg", "scipy.fft", "scipy.fftpack", "scipy.signal", "scipy.sparse"),
}
_BRIDGES = {"cffi", "_cffi_backend", "cppyy", "llvmlite", "tvm_ffi", "_ctypes", "ctypes"}
"""Modules that call native functions unseen. Those of ctypes are imported already: a second copy is not observed."""
_FUNCTIONS = re.compile(
    r"gemm|gemv|(sy|he)(mm|rk|r2k)_?$|tr[sm]m_?$|^(cblas|lapacke|dnnl|mkl|cublas|cudnn|nccl|mpi|ucp|uct)|aoti_torch|^_ZN"
    r"|^[sdcz](dot[cu]?|ger[cu]?|gesvx?|gels[dsy]?|getr[fsi]|potr[fs]|geqrf|orgqr|ormqr|syevd?|geevx?|gesdd)_?(64_)?$",
    re.IGNORECASE,
)
"""Functions of vendors, by name: products, solvers, communication, and everything of torch in C++."""
_CONTENT = re.compile(
    rb"\0(cblas_[sdcz]\w+|[sdcz]gemm_?|cublas\w*gemm\w*|cublasLtMatmul|dnnl_\w+|LAPACKE_\w+|[sdcz]ge(sv|ls|trf)_"
    rb"|nccl(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv)|MPI_(All|Reduce|I?Send|I?Recv|Bcast)\w*)\0",
    re.IGNORECASE,
)
"""Names of vendors' functions in the symbol table of a library that defines or calls them."""


class LoadedLibraries:
    """Notes, from now on and for as long as the process lives, what is loaded and called by hand."""

    def __init__(self, note: Note, own: Sequence[Path] = (), writable: Path = Path("/nonexistent")):
        """`own` are the folders of what the judge compiled from the candidate's source, inside of `writable` or not."""
        self.note = note
        self._own = tuple(f"{os.path.realpath(folder)}/" for folder in own)
        self._writable = tuple(f"{folder}/" for folder in (os.path.realpath(writable), *_WRITABLE))
        self._before = _list_mapped_files()
        self._native = NativeCalls(note, self._may_call)
        self._native.install()
        self._outside = OutsideWork(note, self._may_call, self._writable)
        sys.addaudithook(self._hear)

    def note_mapped_files(self) -> None:
        """Note libraries that native code has loaded, and what was compiled to use a vendor's."""
        for path in _list_mapped_files() - self._before:
            name = os.path.basename(path)
            found = _VENDORS.match(name) or (self._is_own_or_copied(path) and _find_vendor_function(path))
            if found:
                self.note(f"library.{name}")

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not event.startswith(("ctypes.d", "ctypes.call_function", "import", "os.f")):
            return
        if event == "ctypes.dlopen":
            self._note_library(args[0])
        elif event in ("ctypes.dlsym", "ctypes.dlsym/handle"):
            self._note_function(str(getattr(args[0], "_name", None) or ""), str(args[1]))
        elif event == "ctypes.call_function":
            self._native.look(args[0])
        elif event == "import" and args[0] in _MODULES | _BRIDGES and _is_installed(args[0]):
            self.note(f"{'native' if args[0] in _BRIDGES else 'library'}.{args[0]}")
        elif event in ("os.fork", "os.forkpty"):
            self.note(f"library.{event}")

    def _note_library(self, name: Any) -> None:
        """Note a library that is loaded by name or by path, unless a kernel may call it or it is there already."""
        text = os.fsdecode(name or b"")
        path = os.path.realpath(text) if "/" in text else text
        is_known = not path or path in self._before or self._may_call(path)
        if _VENDORS.match(os.path.basename(path)) or not is_known:
            self.note(f"library.{os.path.basename(path)}")

    def _note_function(self, library: str, function: str) -> None:
        is_own = "/" in library and os.path.realpath(library).startswith(self._own)
        if LOADER.match(function):
            self.note(f"native.{function}")
        elif not is_own and _FUNCTIONS.search(function):
            self.note(f"library.{function}")

    def _may_call(self, file: str) -> bool:
        """Return whether a kernel may call functions of this library by itself."""
        path = os.path.realpath(file) if "/" in file else file
        if path.startswith(self._own):
            return True
        is_system = _SYSTEM.match(os.path.basename(path)) or path == os.path.realpath(sys.executable)
        return bool(is_system) and not path.startswith(self._writable)

    def _is_own_or_copied(self, path: str) -> bool:
        return path.startswith((*self._own, *self._writable))


def _is_installed(module: str) -> bool:
    """Return whether an import of this module would find it: many files only try."""
    return module in sys.builtin_module_names or bool(
        importlib.machinery.PathFinder.find_spec(module.partition(".")[0])
    )


def _find_vendor_function(path: str) -> bool:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _CONTENT.search(content) is not None
    except (OSError, ValueError):
        return False


def _list_mapped_files() -> set[str]:
    """Return the full paths of the shared libraries in this process."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return set()
    return {os.path.realpath(fields[5]) for line in lines if len(fields := line.split(None, 5)) > 5 and ".so" in line}
