"""Patches Triton's interpreter where multi-rank kernels need it.

The interpreter keeps bfloat16 values as 16-bit integers, and adds and multiplies them as integers: here such operands
are widened to float32 first and the result is rounded back, as a GPU does. It converts to 8-bit floats with errors in
rounding, carries and special values: torch does it here. And a kernel that spins on another rank lets
that rank run: ranks may outnumber cores. Autotuned kernels get a driver of ours.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pkb.platforms._slow_rank import sleep_after_barrier

_ARITHMETIC = ("binary_op", "unary_op", "ternary_op", "create_fma", "create_dot")
_ATOMICS = ("create_atomic_cas", "create_atomic_rmw", "create_atomic_load", "create_atomic_poll")


def patch_interpreter() -> None:
    """Patch the interpreter of this process, where there is one."""
    try:
        from triton.runtime import interpreter
    except ImportError:
        return
    from pkb.platforms._interpreted_driver import install_driver

    install_driver()
    InterpreterBuilder = interpreter.InterpreterBuilder
    for names, wrap in ((_ARITHMETIC, _compute_in_float32), (_ATOMICS, _yield_before)):
        for name in names:
            if operation := getattr(InterpreterBuilder, name, None):
                setattr(InterpreterBuilder, name, wrap(operation))
    InterpreterBuilder.cast_impl = _round_casts(InterpreterBuilder.cast_impl)
    interpreter._convert_float = _convert_8_bits(interpreter._convert_float)
    interpreter._patch_lang_tensor = _make_indexable(interpreter._patch_lang_tensor)


def _yield_before(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an atomic operation, on which barriers spin, so that it first gives up the time slice."""

    def atomic(*args: Any, **kwargs: Any) -> Any:
        os.sched_yield()
        result = operation(*args, **kwargs)
        sleep_after_barrier()
        return result

    return atomic


def _make_indexable(patch: Callable[..., None]) -> Callable[..., None]:
    """Let scalars be indices: they are arrays of one element, which newer numpy does not convert (Triton < 3.9)."""

    def patch_lang_tensor(tensor: Any, *scope: Any) -> None:
        patch(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    return patch_lang_tensor


def _compute_in_float32(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an operation so that bfloat16 operands are computed in float32, and the result is bfloat16 again."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def is_narrow(value: Any) -> bool:
        return isinstance(value, TensorHandle) and value.dtype.scalar == tl.bfloat16

    def arithmetic(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(map(is_narrow, args)):
            return operation(self, *args, **kwargs)
        wide = [TensorHandle(widen(arg.data), tl.float32) if is_narrow(arg) else arg for arg in args]
        result = operation(self, *wide, **kwargs)
        # A product of bfloat16 tiles goes into the accumulator, which has its own type.
        if operation.__name__ == "create_dot" or result.dtype.scalar != tl.float32:
            return result
        data = narrow(result.data) if result.data.dtype == np.float32 else result.data
        return TensorHandle(data, tl.bfloat16)

    return arithmetic


def _round_casts(cast: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the cast so that float32 to bfloat16 rounds to nearest, ties to even, and integers go through float32."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    float8 = _find_float8_types()

    def cast_impl(self: Any, source: Any, target: Any) -> Any:
        if source.dtype.scalar in float8 and target.scalar not in float8:
            source = TensorHandle(decode_float8(source.data, float8[source.dtype.scalar]), tl.float32)
        if target.scalar in float8 and source.dtype.scalar not in float8:
            values = widen(source.data) if source.dtype.scalar == tl.bfloat16 else source.data
            return TensorHandle(encode_float8(values.astype(np.float32), float8[target.scalar]), target.scalar)
        if target.scalar == tl.bfloat16 and source.dtype.scalar != tl.bfloat16:
            return TensorHandle(narrow(source.data.astype(np.float32)), tl.bfloat16)
        if source.dtype.scalar == tl.bfloat16 and target.scalar != tl.bfloat16:
            source = TensorHandle(widen(source.data), tl.float32)
        return source if target.scalar == source.dtype.scalar else cast(self, source, target)

    return cast_impl


def _convert_8_bits(convert: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the conversion between floats so that torch converts 8-bit ones."""
    import triton.language as tl

    float8 = _find_float8_types()

    def convert_float(data: np.ndarray, source: Any, target: Any, rounding_mode: Any) -> Any:
        if source not in float8 and target not in float8:
            return convert(data, source, target, rounding_mode)
        if source in float8:
            values = decode_float8(data, float8[source])
        else:
            values = widen(data) if source == tl.bfloat16 else data.astype(np.float32)
        if target in float8:
            return encode_float8(values, float8[target], toward_zero="RTZ" in str(rounding_mode))
        if target == tl.bfloat16:
            return narrow(values)
        return values.astype({tl.float16: np.float16, tl.float64: np.float64}.get(target, np.float32))

    return convert_float


def _find_float8_types() -> dict[Any, torch.dtype]:
    """Return the 8-bit floats of Triton that torch has too."""
    import triton.language as tl

    return {
        tl.float8e4nv: torch.float8_e4m3fn,
        tl.float8e5: torch.float8_e5m2,
        tl.float8e4b8: torch.float8_e4m3fnuz,
        tl.float8e5b16: torch.float8_e5m2fnuz,
    }


def decode_float8(codes: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    return torch.from_numpy(np.ascontiguousarray(codes).view(np.uint8)).view(dtype).float().numpy()


def encode_float8(values: np.ndarray, dtype: torch.dtype, toward_zero: bool = False) -> np.ndarray:
    """Round to nearest even and saturate, as Triton does on NVIDIA GPUs: infinity becomes the largest value."""
    most = torch.finfo(dtype).max
    wide = torch.from_numpy(np.ascontiguousarray(values)).clamp(-most, most)
    rounded = wide.to(dtype)
    codes = rounded.view(torch.uint8)
    if toward_zero:
        # Of two neighbours, the one nearer to zero has the smaller code.
        codes = codes - (rounded.float().abs() > wide.abs()).to(torch.uint8)
    return codes.numpy()


def widen(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrow(values: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = ((bits + ((bits >> 16) & 1) + 0x7FFF) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)
