"""Count the floating-point operations of a call on tensors without values."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_ARGUMENTS = 9
"""Number of arguments of a recurrent layer for a batch; the last is batch_first. Packed sequences have fewer."""


def count_flops(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the number of operations of a call, and its result."""
    with torch.no_grad(), _OneStep() as recurrent, _Counter() as counter:
        result = call()
    return float(counter.flops + recurrent.further_flops), result


class _Counter(TorchDispatchMode):
    """Counts by torch's own rules. torch's own counter imports a compiler, which takes more than a second."""

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
    """Runs one step of a recurrent layer and multiplies its count: running all steps takes half a minute."""

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
