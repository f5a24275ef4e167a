"""Compute the reference in float64: the same function on the same inputs, nearly without rounding."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pkb.base.pytree import map_tensors

Function = Callable[..., Any]

_NARROW = {torch.float16, torch.bfloat16, torch.float32}
_NARROWING = {Tensor.float: Tensor.double, Tensor.half: Tensor.double, Tensor.bfloat16: Tensor.double}


def widen(tree: Any) -> Any:
    return map_tensors(tree, lambda t: t.to(torch.float64) if t.dtype in _NARROW else _widen_complex(t))


def _widen_complex(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128) if tensor.dtype is torch.complex64 else tensor


class _Widen(TorchFunctionMode):
    """Replaces narrower floats by float64 wherever the code names one, and draws the reference's random numbers."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype
        """The dtype that the reference computes in."""

    def __torch_function__(
        self, func: Function, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWING:
            return _DRAWING[func](func, self.dtype, args, kwargs)
        args = tuple(_widen_dtype(arg) for arg in args)
        kwargs = {key: _widen_dtype(value) for key, value in kwargs.items()}
        return _NARROWING.get(func, func)(*args, **kwargs)


def _draw(func: Function, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Draw in the reference's dtype, then widen: another dtype would draw other numbers."""
    wanted = kwargs.get("dtype", torch.float32)
    return widen(func(*args, **kwargs | {"dtype": dtype if wanted is torch.float64 else wanted}))


def _draw_like(func: Function, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _draw(func, dtype, args, {"dtype": args[0].dtype} | kwargs)


def _draw_in_place(func: Function, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    own, *rest = args
    return own.copy_(func(torch.empty_like(own, dtype=dtype), *rest, **kwargs))


def _drop_out(func: Function, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Drop the elements that the reference drops, and scale the others in float64."""
    own, *rest = args
    kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
    kept = func(torch.ones_like(own, dtype=dtype), *rest[:2], **kwargs)
    # In `kept` the factor of the remaining elements is rounded; its exact value is 1 / (1 - p).
    p = rest[0] if rest else kwargs.get("p", 0.5)
    return own * (kept != 0) / ((1 - p) if p < 1 and (kept != 1).any() else 1)


_DRAWING: dict[Function, Callable[[Function, torch.dtype, tuple[Any, ...], dict[str, Any]], Any]] = {
    **dict.fromkeys((torch.randn, torch.rand), _draw),
    **dict.fromkeys((torch.randn_like, torch.rand_like), _draw_like),
    **dict.fromkeys((Tensor.normal_, Tensor.uniform_), _draw_in_place),
    **dict.fromkeys((F.dropout, torch.dropout, F.dropout1d, F.dropout2d, F.dropout3d), _drop_out),
}


def _widen_dtype(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value


@contextmanager
def compute_in_float64(dtype: torch.dtype = torch.float32) -> Iterator[None]:
    """Have the code inside compute in float64 where the reference computes in `dtype`."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widen(dtype):
            yield
    finally:
        torch.set_default_dtype(default)
