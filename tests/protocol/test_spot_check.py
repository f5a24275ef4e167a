"""Pieces of large results: from everywhere, where they belong, and vouched for."""

import random

import torch

from pkb.judge.timing.judge_clock import Stretch
from pkb.protocol.digest import digest
from pkb.protocol.spot_check import WHOLE, Excerpt, excerpted, parts

LARGE = torch.arange(2 * WHOLE + 77, dtype=torch.int32).view(-1, 5)


def test_small_tensors_are_compared_whole() -> None:
    chance = random.Random(0)
    assert Excerpt.of((WHOLE,), chance) is None
    assert Excerpt.part((4, WHOLE // 4), chance) is None
    assert len(parts(LARGE[:3])) == 1


def test_pieces_come_from_every_part_and_both_ends() -> None:
    excerpt = Excerpt.of(LARGE.shape, random.Random(1))
    assert excerpt
    found = excerpted(LARGE, excerpt.told())
    assert found.shape == excerpt.shape
    assert (found[0], found[-1]) == (0, LARGE.numel() - 1)
    assert len(found.unique()) == len(found) == 1 << 20
    assert all(int(found[k]) == excerpt.place(k) for k in (0, 12_345, 1 << 19, (1 << 20) - 1))
    other = Excerpt.of(LARGE.shape, random.Random(2))
    assert other != excerpt


def test_no_tile_of_a_matrix_is_passed_over() -> None:
    excerpt = Excerpt.of((4096, 4096), random.Random(3))
    assert excerpt
    seen = excerpted(torch.arange(4096 * 4096, dtype=torch.int32), excerpt.told())
    tiles = (seen // 4096 // 32) * 4096 + seen % 4096 // 32
    assert len(tiles.unique()) == 128 * 128


def test_a_part_is_vouched_for_by_its_digest() -> None:
    digests = [[[[digest(part, 7) for part in parts(LARGE)]]]]
    stretch = Stretch(trial=0, calls=1, us=1.0, key=7, digests=digests)
    for seed in range(3):
        excerpt = Excerpt.part(LARGE.shape, random.Random(seed))
        assert excerpt
        part = excerpted(LARGE, excerpt.told())
        assert stretch.vouched(0, 0, [part])
        part[seed] += 1
        assert not stretch.vouched(0, 0, [part])
    assert not stretch.vouched(0, 0, [])
    assert sum(map(len, parts(LARGE))) == LARGE.numel()
