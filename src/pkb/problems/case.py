"""A problem at one size, dtype, world size and seed, as one rank has it."""

from dataclasses import dataclass, field
from functools import cache, cached_property

import torch
import torch.distributed as dist
from torch import Tensor

from pkb.problems.size import ITEMSIZES

DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in ITEMSIZES}
WHOLE_LIMIT = 8
_PER_OUTLIER, _LEAST_VALUES, _LARGE = 4096, 64, (32.0, 64.0)
"""Of so many values one is large, and at least one in a tensor of so many values; by these factors."""


@dataclass
class Draws:
    """A stream of random tensors on one device, in the run's dtype by default."""

    seed: int
    dtype: torch.dtype
    device: torch.device
    whole: bool = False
    """Draw small whole numbers in place of normal ones, so that sums are exact in any order."""
    outliers: bool = False
    """Make a few normal values so large that no format of few bits, and no clamp, holds them as well as the others."""

    @cached_property
    def generator(self) -> torch.Generator:
        return torch.Generator(device=self.device).manual_seed(self.seed)

    def randn(self, *shape: int, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
        """Normal values with standard deviation `scale`."""
        if self.whole:
            return self.randint(-WHOLE_LIMIT, WHOLE_LIMIT + 1, *shape).to(dtype or self.dtype)
        values = torch.randn(shape, generator=self.generator, device=self.device, dtype=torch.float32)
        if self.outliers and values.numel() >= _LEAST_VALUES:
            self._enlarge_some(values.view(-1))
        return (values * scale).to(dtype or self.dtype)

    def _enlarge_some(self, values: Tensor) -> None:
        count = max(1, values.numel() // _PER_OUTLIER)
        places, factors = (
            self.randint(0, values.numel(), count),
            self.rand(count, low=_LARGE[0], high=_LARGE[1], dtype=torch.float32),
        )
        # Places may coincide: each value is enlarged once.
        values[places] = values[places] * factors

    def rand(self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
        """Uniform values in [low, high)."""
        values = torch.rand(shape, generator=self.generator, device=self.device, dtype=torch.float32)
        return (low + (high - low) * values).to(dtype or self.dtype)

    def randint(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        """Whole numbers in [low, high)."""
        return torch.randint(low, high, shape, generator=self.generator, device=self.device, dtype=dtype)

    def randperm(self, n: int) -> Tensor:
        return torch.randperm(n, generator=self.generator, device=self.device)

    def integer(self, low: int, high: int) -> int:
        """One whole number in [low, high)."""
        return int(self.randint(low, high, 1).item())


@dataclass
class Case(Draws):
    """A posed problem on one rank. It draws from the rank's own stream, and `case.shared` from that of all ranks."""

    m: int = 0
    n: int = 0
    size: str = ""
    """The name of a model's set of constants."""
    published: bool = False
    """Whether a model's inputs and weights are drawn as its file does, which may hide what a candidate leaves out."""
    world: int = 1
    rank: int = 0
    trial: int = 0
    """The trial of the judgement: a problem may vary roots or skew with it."""
    shared_seed: int = field(default=0, repr=False)

    @cached_property
    def shared(self) -> Draws:
        return Draws(self.shared_seed, self.dtype, self.device, self.whole, self.outliers)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def subgroup(self, partition: list[list[int]]) -> dist.ProcessGroup | None:
        """Return the process group of this rank's part of a partition of all ranks.

        Every rank must ask for the same partitions in the same order. Returns None without torch.distributed.
        """
        if not dist.is_initialized():
            return None
        return _subgroup(tuple(tuple(part) for part in partition))


@cache
def _subgroup(partition: tuple[tuple[int, ...], ...]) -> dist.ProcessGroup:
    own, _ = dist.new_subgroups_by_enumeration([list(part) for part in partition])
    return own
