"""The compilers, and the GPUs that they compile for. Nothing here initialises CUDA."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

_ASK_S = 30.0


def search_path() -> str:
    """PATH, then the folder of this Python's own scripts: ninja may be installed there alone."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.prefix) / "bin")])


def cxx() -> str | None:
    return shutil.which(os.environ.get("CXX", "c++"), path=search_path())


def nvcc() -> str | None:
    """Looked for where torch looks."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return shutil.which(Path(home) / "bin" / "nvcc")
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def missing() -> str | None:
    """What compiling C++ lacks here, as an instruction; None when it can be done."""
    if not shutil.which("ninja", path=search_path()):
        return "ninja is not installed, and torch builds extensions with it; run: pip install ninja"
    if not cxx():
        return f"there is no C++ compiler {os.environ.get('CXX', 'c++')}; install g++ or clang, or set CXX to one"
    return None


def architectures() -> str | None:
    """What TORCH_CUDA_ARCH_LIST should be: as set, else this machine's GPUs; None when neither is known."""
    return os.environ.get("TORCH_CUDA_ARCH_LIST") or ";".join(compute_capabilities()) or None


@cache
def compute_capabilities() -> tuple[str, ...]:
    """Of the GPUs, in ascending order: ("9.0",)."""
    found = _answer("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").split()
    return tuple(sorted({line for line in found if line.replace(".", "").isdigit()}, key=float))


@cache
def identity() -> tuple[str, ...]:
    """What the compilers say they are: another answer, another build."""
    compilers = (cxx(), os.environ.get("CC"), nvcc())
    return tuple(_answer(compiler, "--version") for compiler in compilers if compiler)


def _answer(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
