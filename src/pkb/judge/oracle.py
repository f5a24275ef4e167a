"""The reference in float64: the same function on the same inputs, with rounding out of the way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pkb.trees import mapped

_NARROW = {torch.float16, torch.bfloat16, torch.float32}
_NARROWING = {Tensor.float: Tensor.double, Tensor.half: Tensor.double, Tensor.bfloat16: Tensor.double}


def widened(tree: Any) -> Any:
    return mapped(tree, lambda t: t.to(torch.float64) if t.dtype in _NARROW else _complex(t))


def _complex(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128) if tensor.dtype is torch.complex64 else tensor


class _Widen(TorchFunctionMode):
    """Where the code asks for a narrower float by name, it gets float64."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        args = tuple(_wide(arg) for arg in args)
        kwargs = {key: _wide(value) for key, value in (kwargs or {}).items()}
        return _NARROWING.get(func, func)(*args, **kwargs)


def _wide(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value


@contextmanager
def in_float64() -> Iterator[None]:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widen():
            yield
    finally:
        torch.set_default_dtype(default)
