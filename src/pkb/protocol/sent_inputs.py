"""Arguments that the judge draws itself and sends: their nesting as plain JSON, and their tensors.

A rank that has a seed could send the seed to its peers instead of data; arguments that the judge sends have no shorter
form. What cannot be sent, such as a process group, a rank draws for itself from a seed that is of no use.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pkb.base.pytree import iterate_tensors
from pkb.problems.case import Case
from pkb.problems.problem import Problem

_BUMPED = (torch.float32, torch.bfloat16, torch.float16)
_GROWTH, _SHRINKAGE = 2.0, 0.25
"""Of an element smaller than the root mean square, in units of that; and of a larger one. Signs stay, and no element
becomes so large that a reference might overflow."""
_OWN = "own"
"""Stands for what every rank makes for itself."""
_SEQUENCES = {"list": list, "tuple": tuple, "size": torch.Size}


@dataclass(frozen=True)
class DrawnArguments:
    """The arguments of one call on one rank, ready to be sent."""

    form: Any
    tensors: list[Tensor]

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors)

    @classmethod
    def take_apart(cls, args: tuple[Any, ...]) -> "DrawnArguments":
        tensors: list[Tensor] = []
        return cls(_take_apart(args, tensors), tensors)

    def needs_own(self) -> bool:
        """Return whether only a rank that has drawn arguments can rebuild these: a module is filled, never made."""
        return _has_module(self.form)

    def rebuild(self, own: tuple[Any, ...], device: torch.device) -> tuple[Any, ...]:
        """Return the arguments; `own` are those of a rank that drew from another seed, in whose memory they may lie."""
        return _Rebuilder(iter(self.tensors), device).rebuild(self.form, own)


def _take_apart(tree: Any, tensors: list[Tensor]) -> Any:
    if isinstance(tree, Tensor) and tree.is_sparse:
        parts = [_take_apart(part, tensors) for part in (tree._indices(), tree._values())]
        return {"sparse": parts, "shape": list(tree.shape), "coalesced": tree.is_coalesced()}
    if isinstance(tree, Tensor):
        tensors.append(tree)
        return {"tensor": list(tree.stride()), "grad": tree.requires_grad}
    if isinstance(tree, nn.Module):
        return {"module": [_take_apart(tensor, tensors) for tensor in iterate_tensors(tree)]}
    for name, kind in _SEQUENCES.items():
        if type(tree) is kind:
            return {name: [_take_apart(value, tensors) for value in tree]}
    if type(tree) is dict:
        return {"dict": [[_take_apart(part, tensors) for part in pair] for pair in tree.items()]}
    # None may stand for a process group, which the judge has not.
    return {"value": tree} if isinstance(tree, bool | int | float | str) else _OWN


def _has_module(form: Any) -> bool:
    if isinstance(form, dict):
        return "module" in form or any(map(_has_module, form.values()))
    return isinstance(form, list) and any(map(_has_module, form))


@dataclass(frozen=True)
class _Rebuilder:
    tensors: Iterator[Tensor]
    device: torch.device

    def rebuild(self, form: Any, own: Any) -> Any:
        if form == _OWN:
            return own
        if "value" in form:
            return form["value"]
        if "tensor" in form:
            return self._fill(next(self.tensors), form["tensor"], form["grad"], own)
        if "sparse" in form:
            return self._rebuild_sparse(form, own)
        if "module" in form:
            for place, part in zip(iterate_tensors(own), form["module"], strict=True):
                self.rebuild(part, place)
            return own
        if "dict" in form:
            pairs = zip(form["dict"], _list_parts(own.values() if isinstance(own, dict) else ()), strict=False)
            return {self.rebuild(key, None): self.rebuild(value, place) for (key, value), place in pairs}
        ((name, parts),) = form.items()
        places = _list_parts(own if isinstance(own, list | tuple) else ())
        return _SEQUENCES[name](self.rebuild(part, place) for part, place in zip(parts, places, strict=False))

    def _rebuild_sparse(self, form: Any, own: Any) -> Tensor:
        pairs = zip(form["sparse"], _list_parts(iterate_tensors(own)), strict=False)
        indices, values = (self.rebuild(part, place) for part, place in pairs)
        return torch.sparse_coo_tensor(indices, values, form["shape"], is_coalesced=form["coalesced"])

    def _fill(self, value: Tensor, strides: list[int], needs_grad: bool, own: Any) -> Tensor:
        """Return a tensor with the values and strides of what was sent: the rank's own, if its layout is the same."""
        if _list_layout(own) != (value.dtype, list(value.shape), strides):
            own = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=self.device)
            own.requires_grad_(needs_grad)
        # Past the version counter, which would tell.
        own.data.copy_(value)
        return own


def _list_parts(own: Iterable[Any]) -> Iterator[Any]:
    """Yield the rank's own parts, then None for ever: a nesting may depend on the seed."""
    yield from own
    yield from repeat(None)


def _list_layout(own: Any) -> tuple[Any, ...] | None:
    is_plain = isinstance(own, Tensor) and own.layout is torch.strided
    return (own.dtype, list(own.shape), list(own.stride())) if is_plain else None


def draw_arguments(problem: Problem, case: Case, place: tuple[float, float] | None = None) -> tuple[Any, ...]:
    """Draw the arguments of a call; where `place` says so, with one element changed."""
    # A copy of the case has its streams at their beginning.
    args = problem.inputs(replace(case))
    if place:
        bump(args, problem.inputs(replace(case, seed=case.seed ^ 1)), *place)
    return args


def bump(args: Any, others: Any, which: float, where: float) -> None:
    """Change one element, clearly, in a tensor of floats that is this rank's own.

    `others` are arguments from another seed: tensors that are equal in both are shared by all ranks, and stay so.
    """
    own = [tensor for tensor, other in _pair_tensors(args, others) if _is_own(tensor, other)]
    if not own:
        return
    chosen = own[int(which * len(own))].detach()
    # Not torch's: it would import a compiler first.
    place = np.unravel_index(int(where * chosen.numel()), chosen.shape)
    rms = torch.nan_to_num(chosen.float(), posinf=0.0, neginf=0.0).square().mean().sqrt()
    value = chosen[place].float()
    grown = torch.where(value < 0, -1.0, 1.0) * (value.abs() + _GROWTH * rms)
    chosen[place] = torch.where(value.abs() > rms, _SHRINKAGE * value, grown).to(chosen.dtype)


def _pair_tensors(args: Any, others: Any) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(iterate_tensors(args), iterate_tensors(others), strict=True)


def _is_own(tensor: Tensor, other: Tensor) -> bool:
    is_float = tensor.dtype in _BUMPED and tensor.numel() > 0
    return is_float and tensor.shape == other.shape and not torch.equal(tensor, other)
