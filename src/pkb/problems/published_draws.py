"""Let a checkout's module draw inputs: from the judge's seeds, and with process groups that are made once."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.problems.case import Case


@contextmanager
def draw_from(case: Case) -> Iterator[None]:
    """Have torch.manual_seed seed from the case, and torch.full return normal values in place of constant data.

    Ranks that ask for the same seed still get the same values. A published input that is the same number everywhere,
    as those of the collectives are, could be known without having been received; constants of one dimension or none
    are parameters, and stay.
    """
    seed, full = torch.manual_seed, torch.full

    def seed_from_case(value: int) -> torch.Generator:
        return seed(_mix(case.shared_seed, value))

    def draw_values(shape: Sequence[int], value: Any, *rest: Any, **options: Any) -> Tensor:
        constant = full(shape, value, *rest, **options)
        return torch.randn_like(constant) if constant.is_floating_point() and constant.ndim > 1 else constant

    # When a device is first chosen by a context, torch notes which functions obey it: those must be the real ones.
    with torch.device("cpu"):
        torch.empty(0)
    seed(_mix(case.shared_seed, "rank", case.rank))
    with patch.object(torch, "manual_seed", seed_from_case), patch.object(torch, "full", draw_values):
        yield


def _mix(*labels: object) -> int:
    return int.from_bytes(hashlib.sha256("/".join(map(str, labels)).encode()).digest()[:7])


@contextmanager
def keep_groups(case: Case) -> Iterator[None]:
    """Have torch.distributed make each process group once; where it is not running, as in the judge, stand in for it.

    The groups that stand in can be asked for ranks and sizes only: the judge sends arguments, and no groups.
    """
    replaced: dict[str, Any] = {"new_group": _find_group}
    if not isinstance(dist.group.WORLD, dist.ProcessGroup):
        everyone = NamedGroup(tuple(range(case.world)))
        replaced = {
            "new_group": lambda ranks=None, *rest, **options: everyone if ranks is None else NamedGroup(tuple(ranks)),
            "get_rank": lambda group=None: (group or everyone).find_place(case.rank),
            "get_world_size": lambda group=None: len((group or everyone).ranks),
        }
    with ExitStack() as stack:
        for name, function in replaced.items():
            stack.enter_context(patch.object(dist, name, function))
        yield


@dataclass(frozen=True)
class NamedGroup:
    """A process group that only has ranks, where none runs."""

    ranks: tuple[int, ...]

    def find_place(self, rank: int) -> int:
        return self.ranks.index(rank) if rank in self.ranks else -1


_make_group = dist.new_group


def _find_group(ranks: Sequence[int] | None = None, *rest: Any, **options: Any) -> Any:
    return _make_group_once(None if ranks is None else tuple(ranks))


@cache
def _make_group_once(ranks: tuple[int, ...] | None) -> Any:
    return _make_group(ranks if ranks is None else [*ranks])
