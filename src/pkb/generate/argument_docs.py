"""What a problem's arguments look like, in words: shapes and dtypes per rank, what varies, what all ranks share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pkb.base.pytree import tensors
from pkb.errors import UsageError
from pkb.problems.case import Case
from pkb.problems.problem import Problem
from pkb.problems.size import Size

_DRAWS = 3
"""Rounds of inputs that are compared to see what varies."""
_MOST_BYTES = 1 << 30
"""What is drawn with values, where shapes depend on these."""
_LONGEST = 120


@dataclass(frozen=True)
class _Group:
    ranks: list[int]


class _Described(Case):
    """A case that names process groups, which do not exist here."""

    def subgroup(self, partition: list[list[int]]) -> Any:
        return _Group(next(part for part in partition if self.rank in part))


@contextmanager
def _all_ranks(world: int) -> Iterator[None]:
    """Problems pass dist.group.WORLD, which is None unless torch.distributed is initialised."""
    group: Any = dist.group
    before = group.WORLD
    group.WORLD = _Group(list(range(world)))
    try:
        yield
    finally:
        group.WORLD = before


def argument_lines(problem: Problem, size: Size, dtype: str, world: int) -> list[str]:
    """A line for each argument of a call, at this size and with so many ranks."""
    tiny = problem.sizes.get("tiny")
    small = tiny if tiny and problem.fits(tiny, dtype, world) else size
    draw = problem.inputs if tiny else partial(_large, problem)
    with _all_ranks(world):
        rounds = [[draw(case) for case in _cases(problem, small, dtype, world, d)] for d in range(_DRAWS)]
        large = [] if size == small else _cases(problem, size, dtype, world, 0)
        shown = [_large(problem, case) for case in large] or rounds[0]
    lines = []
    for place, parameter in enumerate(problem.parameters):
        if place >= len(shown[0]):
            lines.append(f"- `{parameter.name}`: not passed; its default is {parameter.default!r}")
            continue
        seen = [[arguments[place] for arguments in ranks] for ranks in rounds]
        lines.append(f"- `{parameter.name}`: {_in_words([arguments[place] for arguments in shown], seen)}")
    return lines


def constructor_lines(problem: Problem, size: Size) -> list[str]:
    """A line for each argument that the constructor is given at this size."""
    given = problem.constructed_with(size)
    return [f"- `{name}`: {_described(value)}" for name, value in given.items()] or ["- nothing"]


def _in_words(shown: list[Any], seen: list[list[Any]]) -> str:
    """One argument: its values on all ranks, and what several rounds of small inputs tell about it."""
    words = _by_rank(shown)
    if any(_by_rank(values) != _by_rank(seen[0]) for values in seen):
        words = f"varies from call to call, for example {words}"
    if len(shown) == 1 or not any(True for _ in tensors(shown[0])):
        return words
    alike = all(_same(values[0], value) for values in seen for value in values)
    return f"{words}; {'the same values on all ranks' if alike else 'each rank has values of its own'}"


def _by_rank(values: list[Any]) -> str:
    words = [_described(value) for value in values]
    if len(set(words)) == 1:
        return words[0]
    return "; ".join(f"rank {rank}: {each}" for rank, each in enumerate(words))


def _cases(problem: Problem, size: Size, dtype: str, world: int, draw: int) -> list[Case]:
    """Of every rank."""
    cases: list[Case] = []
    for rank in range(world):
        seeds: dict[str, Any] = {"seed": 1000 * draw + rank + 1, "shared_seed": 1000 * draw, "trial": draw}
        case = problem.case(size, dtype, world, rank, **seeds)
        cases.append(_Described(**{field.name: getattr(case, field.name) for field in fields(case)}))
    return cases


def _large(problem: Problem, case: Case) -> tuple[Any, ...]:
    """Arguments that may be larger than this machine: without values, where their shapes do not depend on any."""
    # Slow to import.
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode():
            return problem.inputs(replace(case, published=True))
    except Exception as error:
        if problem.cost(case).hbm <= _MOST_BYTES:
            return problem.inputs(case)
        raise UsageError(
            f"the shapes of {problem.stem} at {Size(case.m, case.n, case.size)} depend on values, which are too many "
            f"to draw; choose a smaller --size: {', '.join(problem.sizes)}"
        ) from error


def _described(value: Any) -> str:
    match value:
        case Tensor():
            return _tensor(value)
        case nn.Module():
            dtypes = sorted({_name(parameter.dtype) for parameter in value.parameters()})
            return f"{' '.join(repr(value).split())} of {', '.join(dtypes)}"
        case _Group(ranks=ranks):
            return f"the process group of ranks {ranks}"
        case list() | tuple() if any(True for _ in tensors(value)):
            return f"{type(value).__name__} of {len(value)}: {_run_lengths([_described(each) for each in value])}"
        case None:
            return "None"
    kind, text = type(value).__name__, " ".join(repr(value).split())
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
    return shown if shown.startswith(kind) else f"{kind} {shown}"


def _tensor(tensor: Tensor) -> str:
    shape = f"{_name(tensor.dtype)}{list(tensor.shape)}"
    if tensor.is_sparse:
        return f"sparse {shape}"
    return shape if tensor.is_contiguous() else f"{shape} with strides {list(tensor.stride())}"


def _run_lengths(words: list[str]) -> str:
    if len(words) > 1 and len(set(words)) == 1:
        return f"each {words[0]}"
    return ", ".join(words)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _same(one: Any, other: Any) -> bool:
    pairs = zip(tensors(one), tensors(other), strict=False)
    return _described(one) == _described(other) and all(_bytes(a).equal(_bytes(b)) for a, b in pairs)


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8)
