"""Plant faults in a model: freeze an argument or skip an operation, so that every problem of models must reject it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pkb.base.pytree import map_tensors
from pkb.protocol.fault_names import NOTHING, OTHER_LIBRARY, SKIP, STALE

Solution = Callable[..., Any]
NumberedOperations = list[tuple[int, str]]
"""Operations of a call: the position of each in the call, and its name."""

_CHANGE_NOTHING = {
    *("contiguous", "clone", "detach", "to", "float", "half", "double", "bfloat16", "type", "type_as", "cuda", "cpu"),
    *("view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "expand_as", "requires_grad_"),
    *("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "__get__", "__set__"),
}
"""Operations that return their argument's values, if with another shape; where results are compared, dropout's rate
is 0."""


class _OperationCounter(TorchFunctionMode):
    """Counts the operations on tensors, and skips the one of number `skipped`."""

    def __init__(self, skipped: int = -1):
        super().__init__()
        self.skipped, self.count = skipped, 0
        self.skippable: NumberedOperations = []

    def __torch_function__(
        self, func: Solution, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if not args or not isinstance(args[0], Tensor) or name in _CHANGE_NOTHING:
            return func(*args, **(kwargs or {}))
        before, number = _describe_form(args[0]), self.count
        self.count += 1
        if number == self.skipped:
            return args[0]
        result = func(*args, **(kwargs or {}))
        # Batch norms count their calls, in integers.
        if isinstance(result, Tensor) and _describe_form(result) == before and result.is_floating_point():
            self.skippable.append((number, name))
        return result


def _describe_form(tensor: Tensor) -> tuple[torch.Size, torch.dtype]:
    return tensor.shape, tensor.dtype


def list_skippable_operations(solution: Solution, *args: Any) -> NumberedOperations:
    """Return the operations of a call that can be skipped: their result has their argument's shape and dtype."""
    with _OperationCounter() as counter:
        solution(*args)
    return counter.skippable


def _skip_operation(solution: Solution, number: int) -> Solution:
    def run_skipping(*args: Any) -> Any:
        with _OperationCounter(number):
            return solution(*args)

    return run_skipping


def _freeze_argument(solution: Solution, place: int) -> Solution:
    """Pass the first call's argument at `place` to every call."""
    first: list[Any] = []

    def run_frozen(*args: Any) -> Any:
        first[:] = first or [map_tensors(args[place], Tensor.clone)]
        return solution(*args[:place], first[0], *args[place + 1 :])

    return run_frozen


def _use_other_library(solution: Solution, _: int) -> Solution:
    def run_without_libraries(*args: Any) -> Any:
        with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False):
            return solution(*args)

    return run_without_libraries


MODEL_FAULTS: dict[str, Callable[[Solution, int], Solution]] = {
    SKIP: _skip_operation,
    STALE: _freeze_argument,
    NOTHING: lambda solution, _: solution,
    OTHER_LIBRARY: _use_other_library,
}
"""Functions that plant a fault, by its name; they take the number that may follow the name."""
