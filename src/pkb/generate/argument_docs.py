"""Describes a problem's arguments in words: shapes and dtypes per rank, what varies, and what all ranks share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pkb.base.pytree import iterate_tensors
from pkb.errors import UsageError
from pkb.problems.case import Case
from pkb.problems.problem import Problem
from pkb.problems.published_draws import NamedGroup
from pkb.problems.size import Size

_DRAWS = 3
"""Rounds of inputs that are drawn and compared to see what varies."""
_MAX_BYTES = 1 << 30
"""The most bytes of inputs that are drawn with values, where shapes depend on values."""
_MAX_LENGTH = 120


class _DescribedCase(Case):
    """A case whose process groups only have names: no rank runs here."""

    def subgroup(self, partition: list[list[int]]) -> Any:
        return NamedGroup(next(tuple(part) for part in partition if self.rank in part))


@contextmanager
def _pretend_world_group(world: int) -> Iterator[None]:
    """Set dist.group.WORLD, which problems pass on, and which is None unless torch.distributed is initialised."""
    group: Any = dist.group
    before = group.WORLD
    group.WORLD = NamedGroup(tuple(range(world)))
    try:
        yield
    finally:
        group.WORLD = before


def describe_arguments(problem: Problem, size: Size, dtype: str, world: int) -> list[str]:
    """Return a line for each argument of a call, at this size and with `world` ranks."""
    tiny = problem.sizes.get("tiny")
    small = tiny if tiny and problem.may_be_posed(tiny, dtype, world) else size
    draw = problem.inputs if tiny else partial(_draw_large, problem)
    with _pretend_world_group(world):
        rounds = [[draw(case) for case in _make_cases(problem, small, dtype, world, d)] for d in range(_DRAWS)]
        large = [] if size == small else _make_cases(problem, size, dtype, world, 0)
        shown = [_draw_large(problem, case) for case in large] or rounds[0]
    lines = []
    for place, parameter in enumerate(problem.parameters):
        if place >= len(shown[0]):
            lines.append(f"- `{parameter.name}`: not passed; its default is {parameter.default!r}")
            continue
        drawn = [[arguments[place] for arguments in ranks] for ranks in rounds]
        lines.append(f"- `{parameter.name}`: {_describe_argument([arguments[place] for arguments in shown], drawn)}")
    return lines


def describe_constructor(problem: Problem, size: Size) -> list[str]:
    """Return a line for each argument of the model's constructor at this size."""
    arguments = problem.find_constructor_arguments(size)
    return [f"- `{name}`: {_describe(value)}" for name, value in arguments.items()] or ["- nothing"]


def _describe_argument(shown: list[Any], drawn: list[list[Any]]) -> str:
    """Describe one argument: `shown` has its value on every rank, `drawn` several rounds of small values by rank."""
    words = _describe_by_rank(shown)
    if any(_describe_by_rank(values) != _describe_by_rank(drawn[0]) for values in drawn):
        words = f"varies from call to call, for example {words}"
    if len(shown) == 1 or not any(True for _ in iterate_tensors(shown[0])):
        return words
    alike = all(_is_same(values[0], value) for values in drawn for value in values)
    return f"{words}; {'the same values on all ranks' if alike else 'each rank has values of its own'}"


def _describe_by_rank(values: list[Any]) -> str:
    words = [_describe(value) for value in values]
    if len(set(words)) == 1:
        return words[0]
    return "; ".join(f"rank {rank}: {each}" for rank, each in enumerate(words))


def _make_cases(problem: Problem, size: Size, dtype: str, world: int, draw: int) -> list[Case]:
    """Return the case of every rank in one round of inputs."""
    cases: list[Case] = []
    for rank in range(world):
        seeds: dict[str, Any] = {"seed": 1000 * draw + rank + 1, "shared_seed": 1000 * draw, "trial": draw}
        case = problem.case(size, dtype, world, rank, **seeds)
        cases.append(_DescribedCase(**{field.name: getattr(case, field.name) for field in fields(case)}))
    return cases


def _draw_large(problem: Problem, case: Case) -> tuple[Any, ...]:
    """Return arguments that may be larger than this machine's memory: without values, unless shapes depend on them."""
    # Slow to import.
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode():
            return problem.inputs(replace(case, published=True))
    except Exception as error:
        if problem.cost(case).hbm <= _MAX_BYTES:
            return problem.inputs(case)
        raise UsageError(
            f"the shapes of {problem.stem} at {Size(case.m, case.n, case.size)} depend on values, which are too many "
            f"to draw; choose a smaller --size: {', '.join(problem.sizes)}"
        ) from error


def _describe(value: Any) -> str:
    match value:
        case Tensor():
            return _describe_tensor(value)
        case nn.Module():
            dtypes = sorted({_name_dtype(parameter.dtype) for parameter in value.parameters()})
            return f"{' '.join(repr(value).split())} of {', '.join(dtypes)}"
        case NamedGroup(ranks=ranks):
            return f"the process group of ranks {list(ranks)}"
        case list() | tuple() if any(True for _ in iterate_tensors(value)):
            return f"{type(value).__name__} of {len(value)}: {_join_repeated([_describe(each) for each in value])}"
        case None:
            return "None"
    kind, text = type(value).__name__, " ".join(repr(value).split())
    shown = text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]} ..."
    return shown if shown.startswith(kind) else f"{kind} {shown}"


def _describe_tensor(tensor: Tensor) -> str:
    shape = f"{_name_dtype(tensor.dtype)}{list(tensor.shape)}"
    if tensor.is_sparse:
        return f"sparse {shape}"
    return shape if tensor.is_contiguous() else f"{shape} with strides {list(tensor.stride())}"


def _join_repeated(words: list[str]) -> str:
    if len(words) > 1 and len(set(words)) == 1:
        return f"each {words[0]}"
    return ", ".join(words)


def _name_dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _is_same(one: Any, other: Any) -> bool:
    pairs = zip(iterate_tensors(one), iterate_tensors(other), strict=False)
    return _describe(one) == _describe(other) and all(_view_bytes(a).equal(_view_bytes(b)) for a, b in pairs)


def _view_bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8)
