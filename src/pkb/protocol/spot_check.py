"""What is compared of a result too large to be brought over: pieces from everywhere, that only the judge knows."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

WHOLE = 1 << 22
"""Elements of a tensor that is compared whole; of a larger one pieces are, so many of this length."""
_PIECES, _LENGTH = 256, 1 << 12
_PARTS = 64
"""Of a large tensor, each with a digest of its own."""


@dataclass(frozen=True)
class Excerpt:
    """Pieces of a flat tensor, all of one length."""

    starts: tuple[int, ...]
    length: int

    @classmethod
    def of(cls, shape: Sequence[int], chance: random.Random) -> "Excerpt | None":
        """Both ends, and from all between a piece at the same distance, or nearly; None for what is compared whole."""
        count = math.prod(shape)
        if count <= WHOLE:
            return None
        share = count / _PIECES
        inner = (int(k * share + chance.random() * (share - _LENGTH)) for k in range(1, _PIECES - 1))
        return cls((0, *inner, count - _LENGTH), _LENGTH)

    @classmethod
    def part(cls, shape: Sequence[int], chance: random.Random) -> "Excerpt | None":
        """One part in full, for which a digest has vouched."""
        if math.prod(shape) <= WHOLE:
            return None
        start, end = chance.choice(_bounds(math.prod(shape)))
        return cls((start,), end - start)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.starts) * self.length,)

    def told(self) -> list[list[int]]:
        """As a message has it: where pieces start and end."""
        return [[start, start + self.length] for start in self.starts]

    def place(self, index: int) -> int:
        """Where an element of the excerpt stands in the whole."""
        return self.starts[index // self.length] + index % self.length


def excerpted(tensor: Tensor, pieces: Sequence[Sequence[int]] | None) -> Tensor:
    """What a rank hands over."""
    if pieces is None:
        return tensor
    flat = tensor.detach().reshape(-1)
    return torch.cat([flat[start:end] for start, end in pieces])


def parts(tensor: Tensor) -> list[Tensor]:
    """What digests are given of: the tensor, or the parts of a large one."""
    if tensor.numel() <= WHOLE:
        return [tensor]
    flat = tensor.detach().reshape(-1)
    return [flat[start:end] for start, end in _bounds(len(flat))]


def _bounds(count: int) -> list[tuple[int, int]]:
    return [(k * count // _PARTS, (k + 1) * count // _PARTS) for k in range(_PARTS)]
