"""What is compared of a result too large to be brought over: pieces from everywhere, that only the judge knows."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

MOST = 1 << 22
"""Elements of one tensor that are brought over; a larger one is compared in pieces."""
_PIECES = 64
_LENGTH = MOST // _PIECES


@dataclass(frozen=True)
class Excerpt:
    """Pieces of a flat tensor, one in each of as many equal parts; the ends are always there."""

    starts: tuple[int, ...]

    @classmethod
    def of(cls, shape: Sequence[int], chance: random.Random) -> "Excerpt | None":
        """None for what is compared whole."""
        count = math.prod(shape)
        if count <= MOST:
            return None
        part = count / _PIECES
        inner = (int(k * part + chance.random() * (part - _LENGTH)) for k in range(1, _PIECES - 1))
        return cls((0, *inner, count - _LENGTH))

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.starts) * _LENGTH,)

    def place(self, index: int) -> int:
        """Where an element of the excerpt stands in the whole."""
        return self.starts[index // _LENGTH] + index % _LENGTH


def excerpted(tensor: Tensor, starts: Sequence[int] | None) -> Tensor:
    """What a rank hands over."""
    if starts is None:
        return tensor
    flat = tensor.detach().reshape(-1)
    return torch.cat([flat[start : start + _LENGTH] for start in starts])
