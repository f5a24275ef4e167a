"""A short number that stands for a tensor's bytes, under a key that is sent only when the tensor exists.

Nobody can compute the number before the key is known, so a result that is fetched later can neither be made up nor
changed. Digests are fast on the tensor's device; they are no cryptographic hashes.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from pkb.base.tensors import view_bytes

_WORD = 8
_AT_ONCE = 8 << 20
"""The most words that are mixed at once, so that temporary memory stays small."""
# Odd 64-bit multipliers, as signed numbers.
_STEP, _MIX, _SPREAD = -7046029254386353131, -4658895280553007687, -7723592293110705685


def digest_one(tensor: Tensor, key: int) -> int:
    """Return a number that depends on every bit and its place, and is the same on every device."""
    return digest_all([tensor], key)[0]


def digest_all(tensors: Sequence[Tensor], key: int) -> list[int]:
    """Digest many tensors at once: those of one size share their launches, since each launch costs time."""
    words = [_words(view_bytes(tensor).reshape(-1)) for tensor in tensors]
    found: dict[int, int] = {}
    for places in _tables(words):
        # A single one, which may be large, needs no copy.
        table = torch.stack([words[k] for k in places]) if len(places) > 1 else words[places[0]][None]
        found |= zip(places, _mix_rows(table, key).tolist(), strict=True)
    return [found[k] for k in range(len(words))]


def _tables(words: Sequence[Tensor]) -> Iterator[Sequence[int]]:
    """Yield the indices of tensors that fit together into tables of a moderate size."""
    alike: dict[tuple[torch.device, int], list[int]] = {}
    for k, row in enumerate(words):
        alike.setdefault((row.device, len(row)), []).append(k)
    for (_, length), places in alike.items():
        step = max(1, _AT_ONCE // max(length, 1))
        yield from (places[k : k + step] for k in range(0, len(places), step))


def _words(flat: Tensor) -> Tensor:
    if len(flat) % _WORD:
        flat = torch.nn.functional.pad(flat, (0, -len(flat) % _WORD))
    return (flat.clone() if flat.storage_offset() % _WORD else flat).view(torch.int64)


def _mix_rows(table: Tensor, key: int) -> Tensor:
    """Return one number for each row."""
    starts = range(0, max(table.shape[1], 1), _AT_ONCE)
    return torch.stack([_sums(table[:, start : start + _AT_ONCE], start, key) for start in starts]).sum(0)


def _sums(table: Tensor, first: int, key: int) -> Tensor:
    places = torch.arange(first, first + table.shape[1], device=table.device) * _STEP + key
    mixed = (table ^ places) * _MIX
    return ((mixed ^ (mixed >> 29)) * _SPREAD).sum(1)
