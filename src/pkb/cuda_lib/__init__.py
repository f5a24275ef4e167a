"""Kernels in CUDA C++: compiled in a second by NVRTC, launched on torch's stream.

    kernel = compile(SOURCE, "all_reduce", dtype=tensor.dtype, options=["-DWORLD=4"])
    kernel(grid, block, tensor, out, ex.buffers, ex.signals, ex.next_offset(), tensor.numel(), ex.rank)

In front of the source stands our device header, namespace `pkb` (ptx.cuh, pkb.cuh, gemm.cuh beside this file).
The shape of a kernel that uses it:

    extern "C" __global__ void kernel(const scalar* x, scalar* out, pkb::Table buffers, pkb::Table signals,
                                      long long offset, long long count, int rank) {
        const auto [begin, end] = pkb::share(count, pkb::Pack<scalar>::SIZE);
        pkb::copy(pkb::peer<scalar>(buffers, rank) + offset + begin, x + begin, end - begin);
        pkb::rank_barrier(signals, rank, WORLD);
        ...
    }

Block b works on the same share on every rank, so it only needs to wait for block b of the other ranks. The grid comes
from `exchange(...).programs`: all blocks of all ranks must be resident together.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import overload

import torch

from pkb.cuda_lib import _nvrtc
from pkb.cuda_lib._driver import Kernel as Kernel
from pkb.cuda_lib._nvrtc import CompileError as CompileError
from pkb.symmetric import Exchange as Exchange
from pkb.symmetric import exchange as exchange

GEMM_TILE, GEMM_THREADS, GEMM_SHARED = 128, 256, 75776
"""What `pkb::gemm_tile` needs: rows and columns of a tile, threads of a block, bytes of shared memory."""

_HEADERS = ("ptx.cuh", "pkb.cuh", "gemm.cuh")
_SCALARS = {torch.float32: "float", torch.bfloat16: "pkb::bf16", torch.float16: "pkb::f16"}


@overload
def compile(source: str, name: str, /, *, options: Iterable[str] = (), dtype: torch.dtype | None = None) -> Kernel: ...


@overload
def compile(
    source: str, name: str, /, *names: str, options: Iterable[str] = (), dtype: torch.dtype | None = None
) -> tuple[Kernel, ...]: ...


def compile(
    source: str, name: str, /, *names: str, options: Iterable[str] = (), dtype: torch.dtype | None = None
) -> Kernel | tuple[Kernel, ...]:
    """Return the kernels of these names, compiled once in this process. Raise CompileError with the compiler's errors.

    `dtype` is called `scalar` in the source. `options` are NVRTC's, such as -DWORLD=4; definitions hold only for
    the source, not for the header.
    """
    kernels = _compile_once(source, (name, *names), tuple(options), dtype)
    return kernels if names else kernels[0]


def cdiv(count: int, size: int) -> int:
    """Return the number of pieces of this size that hold `count` elements."""
    return -(-count // size)


def whole_packs(elements: int, dtype: torch.dtype) -> int:
    """Round a number of elements up to whole packs of 16 bytes, so that what follows them is aligned."""
    pack = 16 // dtype.itemsize
    return cdiv(elements, pack) * pack


def full_source(source: str, dtype: torch.dtype | None = None, options: Iterable[str] = ()) -> str:
    """Return what is compiled: the header, definitions, then the source, whose lines count from 1."""
    lines = [_read_header(), *(_define(option) for option in options if option.startswith("-D"))]
    if dtype is not None:
        if dtype not in _SCALARS:
            raise TypeError(f"there is no CUDA kernel for {dtype}; use one of {', '.join(map(str, _SCALARS))}")
        lines.append(f"using scalar = {_SCALARS[dtype]};")
    return "\n".join([*lines, '#line 1 "kernel.cu"', source])


@cache
def _compile_once(
    source: str, names: tuple[str, ...], options: tuple[str, ...], dtype: torch.dtype | None
) -> tuple[Kernel, ...]:
    flags = [option for option in options if not option.startswith("-D")]
    image, symbols = _nvrtc.compile_source(full_source(source, dtype, options), names, flags)
    return tuple(Kernel(name, image, symbol) for name, symbol in zip(names, symbols, strict=True))


def _define(option: str) -> str:
    name, equals, value = option.removeprefix("-D").partition("=")
    return f"#define {name} {value if equals else 1}"


@cache
def _read_header() -> str:
    folder = Path(__file__).parent
    return "".join(f'#line 1 "{name}"\n{(folder / name).read_text(encoding="utf-8")}' for name in _HEADERS)
