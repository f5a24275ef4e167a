"""Inputs that the judge draws itself and sends.

A rank that has a seed could send the seed to its peers instead of data; inputs that the judge sends have no shorter
form.
"""

from typing import Any

import torch
from torch import Tensor

from pkb.base.pytree import iterate_tensors, take_apart
from pkb.problems.case import Case
from pkb.problems.problem import Problem


class VaryingForm(Exception):
    """The form of the inputs depends on the seed, so that inputs drawn from a decoy could not hold the real ones."""


def draw_tensors(problem: Problem, real: Case, decoy: Case) -> list[Tensor]:
    """Draw the tensors of one call's arguments. Raises VaryingForm where numbers or shapes depend on the seed."""
    args = problem.inputs(real)
    if _form(args) != _form(problem.inputs(decoy)):
        raise VaryingForm
    return list(iterate_tensors(args))


def fill_arguments(args: tuple[Any, ...], received: list[Tensor]) -> None:
    """Copy the values that the judge has sent into arguments that were drawn from a decoy."""
    for place, value in zip(iterate_tensors(args), received, strict=True):
        place.data.copy_(value)


def _form(args: tuple[Any, ...]) -> tuple[Any, ...]:
    leaves: list[Tensor] = []
    form = take_apart(args, leaves)
    if any(leaf.layout is not torch.strided for leaf in leaves):
        raise VaryingForm
    return form, [(tensor.shape, tensor.dtype) for tensor in iterate_tensors(args)]
