"""One call of a solution on one rank: its arguments, and what there is to say about its result."""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from pkb.case import Case
from pkb.judge.channel import Message, wire_name
from pkb.judge.compare import raw
from pkb.judge.oracle import widened
from pkb.problem import Problem
from pkb.trees import describe, mapped, tensors


@dataclass
class Call:
    problem: Problem
    case: Case
    args: tuple[Any, ...]
    delay: float
    oracle: bool

    @classmethod
    def drawn(cls, problem: Problem, case: Case, delay: float = 0.0, oracle: bool = False) -> "Call":
        args = problem.inputs(case)
        return cls(problem, case, widened(args) if oracle else args, delay, oracle)

    def argument_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in tensors(self.args))

    def spare_args(self) -> tuple[Any, ...]:
        """The arguments, with copies of those that the call may write to."""
        free = {*self.problem.mutates, *self.problem.may_overwrite}
        named = zip(self.problem.arguments, self.args, strict=False)
        return tuple(mapped(arg, Tensor.clone) if name in free else arg for name, arg in named)

    def result(self, output: Any, earlier: list[Any], leaves: list[Tensor]) -> Message:
        """What this call returned, for the judge; its tensors are appended to `leaves`."""
        returned: list[Tensor] = []
        names = self.problem.arguments
        mutated = {name: self.args[names.index(name)] for name in self.problem.mutates}
        form = describe([output, mutated] if mutated else [output], returned)
        leaves += returned
        return {
            "form": form,
            "leaves": [_facts(leaf, self.args, names, earlier) for leaf in returned],
            "changed": self._changed_arguments(),
        }

    def _changed_arguments(self) -> list[str]:
        """Drawing again from the same seed shows what the call left of its inputs, and holds no copies."""
        case = Case(**{field.name: getattr(self.case, field.name) for field in fields(self.case)})
        again = Call.drawn(self.problem, case, oracle=self.oracle).args
        free = {*self.problem.mutates, *self.problem.may_overwrite}
        named = zip(self.problem.arguments, again, self.args, strict=False)
        return [name for name, before, after in named if name not in free and not _same_bits(before, after)]


def _facts(leaf: Tensor, args: tuple[Any, ...], names: tuple[str, ...], earlier: list[Any]) -> Message:
    return {
        "type": type(leaf).__name__,
        "shape": list(leaf.shape),
        "dtype": wire_name(leaf.dtype),
        "device": leaf.device.type,
        "strides": list(leaf.stride()) if leaf.layout is torch.strided else None,
        "aliases": [name for name, arg in zip(names, args, strict=False) if _overlaps(leaf, arg)],
        "reuses": [k for k, output in enumerate(earlier) if _overlaps(leaf, output)],
    }


def _overlaps(leaf: Tensor, tree: Any) -> bool:
    start, end = _extent(leaf)
    return any(a < end and start < b for a, b in map(_extent, tensors(tree)))


def _extent(tensor: Tensor) -> tuple[int, int]:
    """First and last address that a strided tensor touches; an empty one touches none."""
    if tensor.numel() == 0 or tensor.layout is not torch.strided:
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()


def _same_bits(one: Any, other: Any) -> bool:
    before, after = list(tensors(one)), list(tensors(other))
    return len(before) == len(after) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(raw(a), raw(b))
        for a, b in zip(before, after, strict=True)
    )
