"""One call of a solution on one rank: its arguments, and the description of its result."""

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from pkb.base.pytree import Form, describe_excess, describe_kind, is_plain, iterate_tensors, map_tensors, take_apart
from pkb.base.tensors import view_bytes
from pkb.problems.case import Case
from pkb.problems.problem import Problem
from pkb.protocol.channel import wire_name
from pkb.protocol.messages import LeafReport, ResultReport
from pkb.protocol.sent_inputs import DrawnArguments, draw_arguments
from pkb.rank.oracle import widen

_SAMPLED = 16
"""Of a large result, one element in this many is copied right behind its call."""


@dataclass
class Call:
    problem: Problem
    case: Case
    args: tuple[Any, ...]
    delay: float = 0.0
    oracle: bool = False
    bump: tuple[float, float] | None = None
    """Where one element of the inputs is changed."""
    sent: DrawnArguments | None = None
    """What the judge sent in place of what the case draws."""

    @classmethod
    def draw(cls, problem: Problem, case: Case, **rest: Any) -> "Call":
        call = cls(problem, case, (), **rest)
        return replace(call, args=call.fresh_args())

    def fresh_args(self) -> tuple[Any, ...]:
        """Draw the arguments as they were before the call. Drawing again holds no copies."""
        args = draw_arguments(self.problem, self.case, self.bump)
        return self._settle(args if self.sent is None else self.sent.rebuild(args, self.case.device))

    def _settle(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
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
        if excess := describe_excess(output):
            return [{"other": excess}], []
        returned: list[Tensor] = []
        names = self.problem.arguments
        mutated = {name: self.args[names.index(name)] for name in self.problem.mutates}
        return take_apart([output, mutated] if mutated else [output], returned), returned

    def copy_result(self, output: Any, most_bytes: int) -> "ResultCopy":
        """Copy the output in the order of the device's work: what is written after the call's end is too late."""
        leaves = self.list_leaves(output)[1]
        return ResultCopy.of(leaves if all(map(is_plain, leaves)) else [], most_bytes)

    def _list_original_arguments(self) -> tuple[Any, ...]:
        """Return arguments with the values from before the call: what was sent, without drawing again what it hid."""
        if self.sent is None or self.sent.needs_own():
            return self.fresh_args()
        return self._settle(self.sent.rebuild((), self.case.device))

    def _list_changed_arguments(self) -> list[str]:
        again = self._list_original_arguments()
        free = {*self.problem.mutates, *self.problem.may_overwrite}
        named = zip(self.problem.arguments, again, self.args, strict=False)
        return [name for name, before, after in named if name not in free and not _same_bits(before, after)]


@dataclass(frozen=True)
class ResultCopy:
    """The tensors of a result as they were right behind the call: whole, or elements from everywhere in large ones.

    There are none of a result that is refused in any case, since a tensor in it is no plain one.
    """

    copies: list[Tensor]
    is_whole: list[bool]

    @classmethod
    def of(cls, leaves: list[Tensor], most_bytes: int) -> "ResultCopy":
        are_small = sum(leaf.numel() * leaf.element_size() for leaf in leaves) <= most_bytes
        is_whole = [are_small or leaf.layout is not torch.strided or not leaf.is_contiguous() for leaf in leaves]
        pairs = zip(leaves, is_whole, strict=True)
        return cls([leaf.detach().clone() if whole else _sample(leaf).clone() for leaf, whole in pairs], is_whole)

    def settle(self, leaves: list[Tensor]) -> list[Tensor]:
        """Return what the judge gets: the copies; of large tensors what they are now, with what was copied put back."""
        if not self.copies:
            return leaves
        triples = [*zip(leaves, self.copies, self.is_whole, strict=True)]
        # A result that was made in inference mode can be changed only there.
        with torch.inference_mode():
            for leaf, copy, whole in triples:
                if not whole:
                    _sample(leaf).copy_(copy)
        return [copy if whole else leaf for leaf, copy, whole in triples]


def _sample(leaf: Tensor) -> Tensor:
    """Return a view of some elements of a contiguous tensor."""
    return leaf.data.view(-1)[::_SAMPLED]


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


def _describe_leaf(leaf: Tensor, args: tuple[Any, ...], names: tuple[str, ...], earlier: list[Any]) -> LeafReport:
    if not is_plain(leaf):
        # Its shape or strides may not exist, and the kind is enough for the judge.
        return LeafReport(describe_kind(leaf), [], "uint8", "cpu", None, [], [])
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
    if tensor.is_nested or tensor.numel() == 0 or tensor.layout is not torch.strided:
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()


def _same_bits(one: Any, other: Any) -> bool:
    before, after = list(iterate_tensors(one)), list(iterate_tensors(other))
    return len(before) == len(after) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(view_bytes(a), view_bytes(b))
        for a, b in zip(before, after, strict=True)
    )
