"""Loads and launches compiled kernels through the CUDA driver."""

import ctypes
import struct
from functools import cache, cached_property
from typing import Any

import torch

Dim = int | tuple[int, ...]
_ALWAYS_ALLOWED_SHARED = 48 << 10
_MAX_DYNAMIC_SHARED_SIZE = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"""


class Kernel:
    """A compiled kernel: `kernel(grid, block, *args, shared=0)` launches it on the current stream.

    Tensors are passed as pointers, None as a null pointer, bools and ints as integers (the kernel may declare them
    as int, long long or a pointer), floats as float. The memory must stay in use on this stream, as with torch's own
    operations.
    """

    def __init__(self, name: str, image: bytes, symbol: str):
        self.name = name
        self._image = image
        self._symbol = symbol
        self._allowed_shared = _ALWAYS_ALLOWED_SHARED

    def __call__(self, grid: Dim, block: Dim, *args: Any, shared: int = 0) -> None:
        words = (ctypes.c_int64 * len(args))(*(self._pack(arg, k) for k, arg in enumerate(args)))
        base = ctypes.addressof(words)
        places = (ctypes.c_void_p * len(args))(*range(base, base + 8 * len(args), 8))
        if shared > self._allowed_shared:
            _check(_load_driver().cuFuncSetAttribute(self._function, _MAX_DYNAMIC_SHARED_SIZE, shared), self.name)
            self._allowed_shared = shared
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        result = _load_driver().cuLaunchKernel(
            self._function, *_pad_to_three(grid), *_pad_to_three(block), shared, stream, places, None
        )
        _check(result, f"{self.name} with grid {grid}, block {block}, {shared} bytes of shared memory")

    @cached_property
    def _function(self) -> ctypes.c_void_p:
        """The function, loaded at the first launch, when the device is in use already."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(_load_driver().cuModuleLoadData(ctypes.byref(module), self._image), self.name)
        _check(_load_driver().cuModuleGetFunction(ctypes.byref(function), module, self._symbol.encode()), self.name)
        return function

    def _pack(self, arg: Any, place: int) -> int:
        """Return the argument in 64 bits, of which a kernel reads the lower ones that it declares."""
        match arg:
            case torch.Tensor() if arg.is_cuda:
                return arg.data_ptr()
            case int():
                return arg
            case float():
                return struct.unpack("<I", struct.pack("<f", arg))[0]
            case None:
                return 0
        kind = f"a tensor on {arg.device}" if isinstance(arg, torch.Tensor) else f"a {type(arg).__name__}"
        raise TypeError(
            f"argument {place} of {self.name} is {kind}; a kernel takes CUDA tensors, ints, floats and None"
        )


def _pad_to_three(dim: Dim) -> tuple[int, ...]:
    sizes = (dim,) if isinstance(dim, int) else dim
    return (*sizes, 1, 1)[:3]


@cache
def _load_driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check(result: int, what: str) -> None:
    if result:
        text = ctypes.c_char_p()
        _load_driver().cuGetErrorString(result, ctypes.byref(text))
        raise RuntimeError(f"CUDA error {result} ({(text.value or b'unknown').decode()}) in {what}")
