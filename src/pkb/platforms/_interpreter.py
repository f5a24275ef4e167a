"""Patches Triton's interpreter where multi-rank kernels need it.

The interpreter keeps bfloat16 values as 16-bit integers, and adds and multiplies them as integers: here such operands
are widened to float32 first and the result is rounded back, as a GPU does. And a kernel that spins on another rank lets
that rank run: ranks may outnumber cores. Autotuned kernels get a driver of ours.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

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

    def cast_impl(self: Any, source: Any, target: Any) -> Any:
        if target.scalar == tl.bfloat16 and source.dtype.scalar != tl.bfloat16:
            return TensorHandle(narrow(source.data.astype(np.float32)), tl.bfloat16)
        if source.dtype.scalar == tl.bfloat16 and target.scalar != tl.bfloat16:
            source = TensorHandle(widen(source.data), tl.float32)
        return source if target.scalar == source.dtype.scalar else cast(self, source, target)

    return cast_impl


def widen(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrow(values: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = ((bits + ((bits >> 16) & 1) + 0x7FFF) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)
