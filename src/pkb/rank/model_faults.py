"""Wrong answers that any model must reject, made by tampering with its arguments or leaving out what it does."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pkb.base.pytree import mapped

Solution = Callable[..., Any]
Operations = list[tuple[int, str]]
"""Which of a call's operations, and what it is called."""

_CHANGE_NOTHING = {
    *("contiguous", "clone", "detach", "to", "float", "half", "double", "bfloat16", "type", "type_as", "cuda", "cpu"),
    *("view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as", "requires_grad_"),
    *("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "__get__", "__set__"),
}
"""With a result of the argument's shape; dropout's rate is 0 where results are compared."""


class _Operations(TorchFunctionMode):
    """Sees every operation on a tensor; one of them may be left out."""

    def __init__(self, skipped: int = -1):
        super().__init__()
        self.skipped, self.count = skipped, 0
        self.could_be_skipped: Operations = []

    def __torch_function__(
        self, func: Solution, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if not args or not isinstance(args[0], Tensor) or name in _CHANGE_NOTHING:
            return func(*args, **(kwargs or {}))
        before, number = _form(args[0]), self.count
        self.count += 1
        if number == self.skipped:
            return args[0]
        result = func(*args, **(kwargs or {}))
        # Batch norms count their calls, in integers.
        if isinstance(result, Tensor) and _form(result) == before and result.is_floating_point():
            self.could_be_skipped.append((number, name))
        return result


def _form(tensor: Tensor) -> tuple[torch.Size, torch.dtype]:
    return tensor.shape, tensor.dtype


def operations(solution: Solution, *args: Any) -> Operations:
    """Those of a call that could be left out unnoticed by whatever follows them."""
    with _Operations() as seen:
        solution(*args)
    return seen.could_be_skipped


def _skipping(solution: Solution, number: int) -> Solution:
    def skipping(*args: Any) -> Any:
        with _Operations(number):
            return solution(*args)

    return skipping


def _stale(solution: Solution, place: int) -> Solution:
    """One argument is always that of the first call."""
    first: list[Any] = []

    def stale(*args: Any) -> Any:
        first[:] = first or [mapped(args[place], Tensor.clone)]
        return solution(*args[:place], first[0], *args[place + 1 :])

    return stale


def _by_another_library(solution: Solution, _: int) -> Solution:
    def other(*args: Any) -> Any:
        with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False):
            return solution(*args)

    return other


SKIP, STALE, NOTHING, OTHER_LIBRARY = "skip", "stale", "nothing", "other-library"
PLANTED: dict[str, Callable[[Solution, int], Solution]] = {
    SKIP: _skipping,
    STALE: _stale,
    NOTHING: lambda solution, _: solution,
    OTHER_LIBRARY: _by_another_library,
}
"""By name, which a number may follow. The last is no fault, and must pass."""
