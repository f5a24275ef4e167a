"""A problem at one size, dtype, world size and seed, seen from one rank."""

from dataclasses import dataclass, field
from functools import cache, cached_property

import torch
import torch.distributed as dist
from torch import Tensor

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
WHOLE_LIMIT = 8


@dataclass
class Draws:
    """A stream of random tensors on one device, in the run's dtype unless another is asked for."""

    seed: int
    dtype: torch.dtype
    device: torch.device
    whole: bool = False
    """Draw small whole numbers in place of normal ones, so that sums are exact in any order."""

    @cached_property
    def generator(self) -> torch.Generator:
        return torch.Generator(device=self.device).manual_seed(self.seed)

    def randn(self, *shape: int, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
        """Normal values with standard deviation `scale`."""
        if self.whole:
            return self.randint(-WHOLE_LIMIT, WHOLE_LIMIT + 1, *shape).to(dtype or self.dtype)
        values = torch.randn(shape, generator=self.generator, device=self.device, dtype=torch.float32)
        return (values * scale).to(dtype or self.dtype)

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
    """Draws from this rank's own stream; `case.shared` draws what all ranks hold alike."""

    m: int = 0
    n: int = 0
    size: str = ""
    """Of a model: the name of the constants that its file is read with."""
    published: bool = False
    """Of a model: inputs and weights as its file draws them, not such that the output depends on all of them."""
    world: int = 1
    rank: int = 0
    trial: int = 0
    """Which trial of the judgement: a problem may vary roots or skew with it."""
    shared_seed: int = field(default=0, repr=False)

    @cached_property
    def shared(self) -> Draws:
        return Draws(self.shared_seed, self.dtype, self.device, self.whole)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def subgroup(self, partition: list[list[int]]) -> dist.ProcessGroup | None:
        """The process group of this rank's part, when all ranks are divided into these parts.

        Every rank asks for the same partitions in the same order. Without torch.distributed there is none.
        """
        if not dist.is_initialized():
            return None
        return _subgroup(tuple(tuple(part) for part in partition))


@cache
def _subgroup(partition: tuple[tuple[int, ...], ...]) -> dist.ProcessGroup:
    own, _ = dist.new_subgroups_by_enumeration([list(part) for part in partition])
    return own
