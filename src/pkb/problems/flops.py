"""How many floating-point operations a call takes, counted on tensors without values."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_ARGUMENTS = 9
"""Of these for a batch; the last is whether that comes first. Packed sequences have others."""


def counted(call: Callable[[], Any]) -> tuple[float, Any]:
    """The operations of a call, and what it returned."""
    with torch.no_grad(), _OneStep() as recurrent, _Counter() as counter:
        result = call()
    return float(counter.flops + recurrent.further_flops), result


class _Counter(TorchDispatchMode):
    """Torch's own rules, without torch's own counter, which imports a compiler for more than a second."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = flop_registry.get(func._overloadpacket)
        if rule is None:
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        result = func(*args, **kwargs)
        if rule is not None:
            self.flops += rule(*args, **kwargs, out_val=result)
        return result


class _OneStep(TorchFunctionMode):
    """Runs one step of recurrent layers, and counts all: they are alike, and one by one they take half a minute."""

    def __init__(self) -> None:
        super().__init__()
        self.further_flops = 0

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if getattr(function, "__name__", "") not in _RECURRENT or len(args) != _ARGUMENTS:
            return function(*args, **(kwargs or {}))
        sequence, *rest = args
        axis = 1 if args[-1] else 0
        with _Counter() as counter:
            output, *states = function(sequence.narrow(axis, 0, 1), *rest)
        steps = sequence.shape[axis]
        self.further_flops += (steps - 1) * counter.flops
        shape = [steps if place == axis else size for place, size in enumerate(output.shape)]
        return output.expand(shape), *states
