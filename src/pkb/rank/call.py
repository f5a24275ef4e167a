"""One call of a solution on one rank: its arguments, and the description of its result."""

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pkb.base.pytree import Form, describe_kind, iterate_tensors, map_tensors, take_apart
from pkb.base.tensors import view_bytes
from pkb.problems.case import Case
from pkb.problems.problem import Problem
from pkb.protocol.channel import wire_name
from pkb.protocol.messages import LeafReport, ResultReport
from pkb.protocol.sent_inputs import fill_arguments
from pkb.rank.oracle import widen

_BUMPED = (torch.float32, torch.bfloat16, torch.float16)
_GROWTH, _SHRINKAGE = 2.0, 0.25
"""Of an element smaller than the root mean square, in units of that; and of a larger one. Signs stay, and no element
becomes so large that a reference might overflow."""

_COPIED = 256 << 20
"""Bytes of a result, at the most."""


@dataclass
class Call:
    problem: Problem
    case: Case
    args: tuple[Any, ...]
    delay: float = 0.0
    oracle: bool = False
    bump: tuple[float, float] | None = None
    """Where one element of the inputs is changed."""
    sent: list[Tensor] | None = None
    """The values that the judge sent in place of what the case draws."""
    device: torch.device | None = None
    """Where the arguments go, if they are drawn elsewhere."""

    @classmethod
    def draw(cls, problem: Problem, case: Case, **rest: Any) -> "Call":
        call = cls(problem, case, (), **rest)
        return replace(call, args=call.fresh_args())

    def fresh_args(self) -> tuple[Any, ...]:
        """Draw the arguments as they were before the call. Drawing again holds no copies."""
        # A copy has its streams at their beginning.
        case = replace(self.case)
        args = self.problem.inputs(case)
        if self.bump:
            bump(args, self.problem.inputs(_reseed(case)), *self.bump)
        if self.sent is not None:
            fill_arguments(args, self.sent)
        if self.device is not None:
            args = map_tensors(args, lambda tensor: tensor.to(self.device))
        return widen(args) if self.oracle else args

    def reuse_memory(self, earlier: tuple[Any, ...]) -> "Call":
        """Put the arguments into the memory of earlier ones, where they fit: an address must tell nothing."""
        written = {*self.problem.mutates, *self.problem.may_overwrite}
        named = zip_longest(self.problem.arguments[: len(self.args)], self.args, earlier[: len(self.args)])
        return replace(self, args=tuple(new if name in written else _copy_into(new, old) for name, new, old in named))

    def begin(self) -> None:
        self.problem.begin(self.case)

    def argument_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in iterate_tensors(self.args))

    def spare_args(self) -> tuple[Any, ...]:
        """Return the arguments, with copies of those that the call may write to."""
        free = {*self.problem.mutates, *self.problem.may_overwrite}
        named = zip(self.problem.arguments, self.args, strict=False)
        return tuple(map_tensors(arg, Tensor.clone) if name in free else arg for name, arg in named)

    def describe_result(self, output: Any, earlier: list[Any], leaves: list[Tensor]) -> ResultReport:
        """Describe what this call returned, for the judge; append its tensors to `leaves`."""
        form, returned = self.list_leaves(output)
        leaves += returned
        reports = [_describe_leaf(leaf, self.args, self.problem.arguments, earlier) for leaf in returned]
        return ResultReport(form, reports, self._list_changed_arguments())

    def list_leaves(self, output: Any) -> tuple[Form, list[Tensor]]:
        """Return the form and tensors of all that counts as output, arguments changed in place included."""
        returned: list[Tensor] = []
        names = self.problem.arguments
        mutated = {name: self.args[names.index(name)] for name in self.problem.mutates}
        return take_apart([output, mutated] if mutated else [output], returned), returned

    def copy_leaves(self, output: Any) -> list[Tensor]:
        """Copy the output in the order of the device's work: what is written after the call's end is too late.

        Returns nothing where the copies would be large.
        """
        leaves = self.list_leaves(output)[1]
        small = sum(leaf.numel() * leaf.element_size() for leaf in leaves) <= _COPIED
        return [leaf.detach().clone() for leaf in leaves] if small else []

    def _list_changed_arguments(self) -> list[str]:
        again = self.fresh_args()
        free = {*self.problem.mutates, *self.problem.may_overwrite}
        named = zip(self.problem.arguments, again, self.args, strict=False)
        return [name for name, before, after in named if name not in free and not _same_bits(before, after)]


def _copy_into(new: Any, old: Any) -> Any:
    """Return `old` with the values of `new`, or `new` itself where they do not match."""
    if not (isinstance(new, Tensor) and isinstance(old, Tensor)) or _list_traits(new) != _list_traits(old):
        return new
    if new.requires_grad or new.layout is not torch.strided:
        return new
    # Past the version counter, which would tell.
    old.data.copy_(new)
    return old


def _list_traits(tensor: Tensor) -> tuple[Any, ...]:
    return type(tensor), tensor.layout, tensor.dtype, tensor.device, tensor.shape, tensor.is_contiguous()


def _reseed(case: Case) -> Case:
    return replace(case, seed=case.seed ^ 1)


def bump(args: Any, others: Any, which: float, where: float) -> None:
    """Change one element, clearly, in a tensor of floats that is this rank's own.

    `others` are arguments from another seed: tensors that are equal in both are shared by all ranks, and stay so.
    """
    pairs = zip(iterate_tensors(args), iterate_tensors(others), strict=True)
    own = [t for t, o in pairs if t.dtype in _BUMPED and t.numel() and t.shape == o.shape and not torch.equal(t, o)]
    if not own:
        return
    chosen = own[int(which * len(own))].detach()
    # Not torch's: it would import a compiler first.
    place = np.unravel_index(int(where * chosen.numel()), chosen.shape)
    rms = torch.nan_to_num(chosen.float(), posinf=0.0, neginf=0.0).square().mean().sqrt()
    value = chosen[place].float()
    grown = torch.where(value < 0, -1.0, 1.0) * (value.abs() + _GROWTH * rms)
    chosen[place] = torch.where(value.abs() > rms, _SHRINKAGE * value, grown).to(chosen.dtype)


def _describe_leaf(leaf: Tensor, args: tuple[Any, ...], names: tuple[str, ...], earlier: list[Any]) -> LeafReport:
    return LeafReport(
        type=describe_kind(leaf),
        shape=list(leaf.shape),
        dtype=wire_name(leaf.dtype),
        device=leaf.device.type,
        strides=list(leaf.stride()) if leaf.layout is torch.strided else None,
        aliases=[name for name, arg in zip(names, args, strict=False) if _overlaps(leaf, arg)],
        reuses=[k for k, output in enumerate(earlier) if _overlaps(leaf, output)],
    )


def _overlaps(leaf: Tensor, tree: Any) -> bool:
    start, end = _extent(leaf)
    return any(a < end and start < b for a, b in map(_extent, iterate_tensors(tree)))


def _extent(tensor: Tensor) -> tuple[int, int]:
    """Return the first and the last address that a strided tensor touches; an empty one touches none."""
    if tensor.numel() == 0 or tensor.layout is not torch.strided:
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()


def _same_bits(one: Any, other: Any) -> bool:
    before, after = list(iterate_tensors(one)), list(iterate_tensors(other))
    return len(before) == len(after) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(view_bytes(a), view_bytes(b))
        for a, b in zip(before, after, strict=True)
    )
