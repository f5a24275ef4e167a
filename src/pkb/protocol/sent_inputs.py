"""Inputs that the judge draws itself and sends.

A rank that has a seed could pass it on, which is shorter than the inputs; what it is given here has no shorter form.
"""

from typing import Any

import torch
from torch import Tensor

from pkb.base.pytree import describe, tensors
from pkb.problems.case import Case
from pkb.problems.problem import Problem


class Formless(Exception):
    """What a rank draws from the decoy could not hold the real inputs."""


def given(problem: Problem, real: Case, decoy: Case) -> list[Tensor]:
    """The tensors of one call's arguments. Raises Formless where numbers or shapes depend on the seed."""
    args = problem.inputs(real)
    if _form(args) != _form(problem.inputs(decoy)):
        raise Formless
    return list(tensors(args))


def take(args: tuple[Any, ...], received: list[Tensor]) -> None:
    """Put what the judge has sent into arguments that were drawn from a decoy."""
    for place, value in zip(tensors(args), received, strict=True):
        place.data.copy_(value)


def _form(args: tuple[Any, ...]) -> tuple[Any, ...]:
    leaves: list[Tensor] = []
    form = describe(args, leaves)
    if any(leaf.layout is not torch.strided for leaf in leaves):
        raise Formless
    return form, [(tensor.shape, tensor.dtype) for tensor in tensors(args)]
