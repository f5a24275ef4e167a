"""Compiles CUDA sources to machine code for this GPU with NVRTC, without nvcc or a host compiler."""

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import torch

from pkb.base.compiler_log import trim_log


class CompileError(RuntimeError):
    """A kernel does not compile. The message names lines of the candidate's own source, as kernel.cu(LINE)."""


def compile_source(source: str, names: Sequence[str], options: Sequence[str]) -> tuple[bytes, list[str]]:
    """Return the machine code and the symbols of these kernels. A name may be an instance: "kernel<float>"."""
    nvrtc = _load_library()
    program = ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        for name in names:
            _check(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        flags = [option.encode() for option in (_name_target(), "--std=c++17", *_list_includes(), *options)]
        if nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags)):
            log = _read_text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            errors = trim_log(log.rstrip(b"\0").decode(errors="replace"))
            raise CompileError("\n".join(["fix these errors:", *errors]))
        image = _read_text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        return image, [_find_symbol(program, name) for name in names]
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _name_target() -> str:
    major, minor = torch.cuda.get_device_capability()
    # The code runs on this GPU only, so it may use features of this architecture alone (wgmma on Hopper).
    return f"--gpu-architecture=sm_{major}{minor}{'a' if major >= 9 else ''}"


def _find_symbol(program: ctypes.c_void_p, name: str) -> str:
    symbol = ctypes.c_char_p()
    _check(_load_library().nvrtcGetLoweredName(program, name.encode(), ctypes.byref(symbol)))
    return (symbol.value or b"").decode()


def _read_text(size_of: Callable[..., int], read: Callable[..., int], program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(read(program, buffer))
    return buffer.raw


def _check(result: int) -> None:
    if result:
        explain = _load_library().nvrtcGetErrorString
        explain.restype = ctypes.c_char_p
        raise RuntimeError(f"NVRTC failed: {explain(result).decode()}")


@cache
def _load_library() -> ctypes.CDLL:
    if not torch.version.cuda:
        raise RuntimeError("this torch is built without CUDA; install a CUDA build of torch to compile kernels")
    name = f"libnvrtc.so.{torch.version.cuda.split('.')[0]}"
    for path in (*_list_in_wheels(f"lib/{name}"), _find_toolkit() / "lib64" / name):
        if path.exists():
            # NVRTC loads this library by its name alone, which only works if it is loaded already.
            for part in path.parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(part))
            return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL(name)
    except OSError:
        raise RuntimeError(f"{name} is not found; it is part of CUDA: put its folder on LD_LIBRARY_PATH") from None


@cache
def _list_includes() -> list[str]:
    """Return the folders of CUDA's headers, for sources that include some; the header of pkb does not."""
    folders = (*_list_in_wheels("include"), _find_toolkit() / "include")
    return [f"-I{folder}" for folder in folders if folder.is_dir()]


def _find_toolkit() -> Path:
    return Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


def _list_in_wheels(part: str) -> list[Path]:
    """Return the paths of this part in the NVIDIA packages that torch's wheels install."""
    return sorted((Path(torch.__file__).parents[1] / "nvidia").glob(f"*/{part}"))
