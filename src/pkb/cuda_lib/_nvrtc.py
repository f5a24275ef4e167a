"""NVRTC: CUDA source to machine code for this GPU, without nvcc or a host compiler."""

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import torch

from pkb.cuda_lib._log import CompileError, trimmed


def compiled(source: str, names: Sequence[str], options: Sequence[str]) -> tuple[bytes, list[str]]:
    """The machine code, and the symbols of the kernels named. Names may be instances: "kernel<float>"."""
    nvrtc = _library()
    program = ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        for name in names:
            _check(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        flags = [option.encode() for option in (_target(), "--std=c++17", *_includes(), *options)]
        if nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags)):
            log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise CompileError("mend these lines:\n" + trimmed(log.rstrip(b"\0").decode(errors="replace")))
        image = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        return image, [_symbol(program, name) for name in names]
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _target() -> str:
    major, minor = torch.cuda.get_device_capability()
    # The code runs on this GPU only, so it may use what is special to its kind (wgmma on Hopper).
    return f"--gpu-architecture=sm_{major}{minor}{'a' if major >= 9 else ''}"


def _symbol(program: ctypes.c_void_p, name: str) -> str:
    symbol = ctypes.c_char_p()
    _check(_library().nvrtcGetLoweredName(program, name.encode(), ctypes.byref(symbol)))
    return (symbol.value or b"").decode()


def _text(size_of: Callable[..., int], read: Callable[..., int], program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(read(program, buffer))
    return buffer.raw


def _check(result: int) -> None:
    if result:
        explain = _library().nvrtcGetErrorString
        explain.restype = ctypes.c_char_p
        raise RuntimeError(f"NVRTC failed: {explain(result).decode()}")


@cache
def _library() -> ctypes.CDLL:
    if not torch.version.cuda:
        raise RuntimeError("this torch is built without CUDA; install a CUDA build of torch to compile kernels")
    name = f"libnvrtc.so.{torch.version.cuda.split('.')[0]}"
    for path in (*_beside_torch(f"lib/{name}"), _toolkit() / "lib64" / name):
        if path.exists():
            # NVRTC asks for this one by name alone, which only finds it where it is loaded already.
            for part in path.parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(part))
            return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL(name)
    except OSError:
        raise RuntimeError(f"{name} is not found; it is part of CUDA: put its folder on LD_LIBRARY_PATH") from None


@cache
def _includes() -> list[str]:
    """CUDA's own headers, for sources that include some; ours do not."""
    folders = (*_beside_torch("include"), _toolkit() / "include")
    return [f"-I{folder}" for folder in folders if folder.is_dir()]


def _toolkit() -> Path:
    return Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


def _beside_torch(part: str) -> list[Path]:
    """In the packages that torch's wheels bring along."""
    return sorted((Path(torch.__file__).parents[1] / "nvidia").glob(f"*/{part}"))
