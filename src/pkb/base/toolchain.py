"""Finds compilers, and the GPUs that they compile for. Nothing here initialises CUDA."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

_TIMEOUT_S = 30.0


def make_search_path() -> str:
    """Return PATH and the folder of this Python's own scripts: ninja may be installed only there."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.prefix) / "bin")])


def find_cxx() -> str | None:
    return shutil.which(os.environ.get("CXX", "c++"), path=make_search_path())


def find_nvcc() -> str | None:
    """Find nvcc where torch looks for it."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return shutil.which(Path(home) / "bin" / "nvcc")
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def find_missing() -> str | None:
    """Return what this machine lacks to compile C++, as an instruction; None when nothing is missing."""
    if not shutil.which("ninja", path=make_search_path()):
        return "ninja is not installed, and torch builds extensions with it; run: pip install ninja"
    if not find_cxx():
        return f"there is no C++ compiler {os.environ.get('CXX', 'c++')}; install g++ or clang, or set CXX to one"
    return None


def find_architectures() -> str | None:
    """Return TORCH_CUDA_ARCH_LIST as it is set, or for this machine's GPUs; None when neither is known."""
    return os.environ.get("TORCH_CUDA_ARCH_LIST") or ";".join(query_compute_capabilities()) or None


@cache
def query_compute_capabilities() -> tuple[str, ...]:
    """Return the compute capabilities of this machine's GPUs in ascending order, such as ("9.0",)."""
    found = _run("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").split()
    return tuple(sorted({line for line in found if line.replace(".", "").isdigit()}, key=float))


@cache
def query_versions() -> tuple[str, ...]:
    """Return the versions of the compilers: with other versions, extensions are built again."""
    compilers = (find_cxx(), os.environ.get("CC"), find_nvcc())
    return tuple(_run(compiler, "--version") for compiler in compilers if compiler)


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
