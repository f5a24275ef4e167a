"""Spot checks: of a result too large to be sent, pieces from everywhere are compared, which only the judge knows."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

WHOLE = 1 << 22
"""The most elements of a tensor that is compared whole; of a larger one, pieces are compared."""
_PIECES, _LENGTH = 256, 1 << 12
_SHORT, _SHORT_PIECES, _SHORT_LENGTH = 1 << 16, 64, 1 << 10
"""The same for a timed call: all blocks have one whose result is fetched, between the blocks."""
_PARTS = 64
"""The number of parts of a large tensor that have a digest each."""


@dataclass(frozen=True)
class Excerpt:
    """Pieces of a flat tensor, all of one length."""

    starts: tuple[int, ...]
    length: int

    @classmethod
    def of(cls, shape: Sequence[int], chance: random.Random) -> "Excerpt | None":
        """Choose both ends, and between them pieces at about the same distance; None for what is compared whole."""
        count = math.prod(shape)
        return cls._spread(count, _PIECES, _LENGTH, chance) if count > WHOLE else None

    @classmethod
    def short(cls, shape: Sequence[int], chance: random.Random) -> "Excerpt | None":
        """Choose in the same way, but less: for the result of a timed call."""
        count = math.prod(shape)
        return cls._spread(count, _SHORT_PIECES, _SHORT_LENGTH, chance) if count > _SHORT else None

    @classmethod
    def _spread(cls, count: int, pieces: int, length: int, chance: random.Random) -> "Excerpt":
        share = count / pieces
        inner = (int(k * share + chance.random() * (share - length)) for k in range(1, pieces - 1))
        return cls((0, *inner, count - length), length)

    @classmethod
    def part(cls, shape: Sequence[int], chance: random.Random) -> "Excerpt | None":
        """Choose one part in full, which has a digest of its own."""
        if math.prod(shape) <= WHOLE:
            return None
        start, end = chance.choice(_bounds(math.prod(shape)))
        return cls((start,), end - start)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.starts) * self.length,)

    def list_pieces(self) -> list[tuple[int, int]]:
        """Return where the pieces start and end."""
        return [(start, start + self.length) for start in self.starts]

    def place(self, index: int) -> int:
        """Return the place of an excerpt's element in the whole tensor."""
        return self.starts[index // self.length] + index % self.length


def cut_pieces(tensor: Tensor, pieces: Sequence[Sequence[int]] | None) -> Tensor:
    """Return the pieces of a tensor, one after the other; None means all of it."""
    if pieces is None:
        return tensor
    flat = tensor.detach().reshape(-1)
    return torch.cat([flat[start:end] for start, end in pieces])


def split_parts(tensor: Tensor) -> list[Tensor]:
    """Return the tensor, or the parts of a large one, each of which gets a digest."""
    if tensor.numel() <= WHOLE:
        return [tensor]
    flat = tensor.detach().reshape(-1)
    return [flat[start:end] for start, end in _bounds(len(flat))]


def _bounds(count: int) -> list[tuple[int, int]]:
    return [(k * count // _PARTS, (k + 1) * count // _PARTS) for k in range(_PARTS)]
