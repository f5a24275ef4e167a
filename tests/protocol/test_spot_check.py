"""Pieces of large results: from everywhere, where they belong, and vouched for."""

import random

import torch

from pkb.judge.timing.judge_clock import ClockRun
from pkb.protocol.digest import digest_one
from pkb.protocol.spot_check import WHOLE, Excerpt, cut_pieces, split_parts
from pkb.trial import Trial, TrialKind

LARGE = torch.arange(2 * WHOLE + 77, dtype=torch.int32).view(-1, 5)


def test_small_tensors_are_compared_whole() -> None:
    chance = random.Random(0)
    assert Excerpt.of((WHOLE,), chance) is None
    assert Excerpt.part((4, WHOLE // 4), chance) is None
    assert len(split_parts(LARGE[:3])) == 1


def test_pieces_come_from_every_part_and_both_ends() -> None:
    excerpt = Excerpt.of(LARGE.shape, random.Random(1))
    assert excerpt
    found = cut_pieces(LARGE, excerpt.list_pieces())
    assert found.shape == excerpt.shape
    assert (found[0], found[-1]) == (0, LARGE.numel() - 1)
    assert len(found.unique()) == len(found) == 1 << 20
    assert all(int(found[k]) == excerpt.place(k) for k in (0, 12_345, 1 << 19, (1 << 20) - 1))
    other = Excerpt.of(LARGE.shape, random.Random(2))
    assert other != excerpt


def test_no_tile_of_a_matrix_is_passed_over() -> None:
    excerpt = Excerpt.of((4096, 4096), random.Random(3))
    assert excerpt
    seen = cut_pieces(torch.arange(4096 * 4096, dtype=torch.int32), excerpt.list_pieces())
    tiles = (seen // 4096 // 32) * 4096 + seen % 4096 // 32
    assert len(tiles.unique()) == 128 * 128


def test_a_part_is_vouched_for_by_its_digest() -> None:
    digests = [[[[digest_one(part, 7) for part in split_parts(LARGE)]]]]
    stretch = ClockRun(Trial(TrialKind.CLOCK), calls=1, us=1.0, key=7, digests=digests)
    for seed in range(3):
        excerpt = Excerpt.part(LARGE.shape, random.Random(seed))
        assert excerpt
        part = cut_pieces(LARGE, excerpt.list_pieces())
        assert stretch.is_vouched(0, 0, [part])
        part[seed] += 1
        assert not stretch.is_vouched(0, 0, [part])
    assert not stretch.is_vouched(0, 0, [])
    assert sum(map(len, split_parts(LARGE))) == LARGE.numel()
