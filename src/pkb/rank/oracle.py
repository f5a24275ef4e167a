"""The reference in float64: the same function on the same inputs, with rounding out of the way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pkb.base.pytree import mapped

Function = Callable[..., Any]

_NARROW = {torch.float16, torch.bfloat16, torch.float32}
_NARROWING = {Tensor.float: Tensor.double, Tensor.half: Tensor.double, Tensor.bfloat16: Tensor.double}


def widened(tree: Any) -> Any:
    return mapped(tree, lambda t: t.to(torch.float64) if t.dtype in _NARROW else _complex(t))


def _complex(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128) if tensor.dtype is torch.complex64 else tensor


class _Widen(TorchFunctionMode):
    """Where the code asks for a narrower float by name, it gets float64. What it draws are the reference's numbers."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype
        """What the reference computes in."""

    def __torch_function__(
        self, func: Function, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWING:
            return _DRAWING[func](func, self.dtype, args, kwargs)
        args = tuple(_wide(arg) for arg in args)
        kwargs = {key: _wide(value) for key, value in kwargs.items()}
        return _NARROWING.get(func, func)(*args, **kwargs)


def _drawn(func: Function, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A stream of one dtype has other numbers than that of another: draw in the reference's, then widen."""
    asked = kwargs.get("dtype", torch.float32)
    return widened(func(*args, **kwargs | {"dtype": dtype if asked is torch.float64 else asked}))


def _drawn_like(func: Function, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _drawn(func, dtype, args, {"dtype": args[0].dtype} | kwargs)


def _drawn_in_place(func: Function, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    own, *rest = args
    return own.copy_(func(torch.empty_like(own, dtype=dtype), *rest, **kwargs))


def _dropped(func: Function, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What is dropped in the reference; the others grow in float64."""
    own, *rest = args
    kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
    kept = func(torch.ones_like(own, dtype=dtype), *rest[:2], **kwargs)
    # The survivors' common factor, rounded as the dtype has it, to its exact value: 1 / (1 - p).
    p = rest[0] if rest else kwargs.get("p", 0.5)
    return own * (kept != 0) / ((1 - p) if p < 1 and (kept != 1).any() else 1)


_DRAWING: dict[Function, Callable[[Function, torch.dtype, tuple[Any, ...], dict[str, Any]], Any]] = {
    **dict.fromkeys((torch.randn, torch.rand), _drawn),
    **dict.fromkeys((torch.randn_like, torch.rand_like), _drawn_like),
    **dict.fromkeys((Tensor.normal_, Tensor.uniform_), _drawn_in_place),
    **dict.fromkeys((F.dropout, torch.dropout, F.dropout1d, F.dropout2d, F.dropout3d), _dropped),
}


def _wide(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value


@contextmanager
def in_float64(dtype: torch.dtype = torch.float32) -> Iterator[None]:
    """`dtype` is what the reference computes in."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widen(dtype):
            yield
    finally:
        torch.set_default_dtype(default)
