"""Models of KernelBench draw their weights in the order of the published files, which a seed alone must reproduce."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from pkb.problems.suite import load_problem

Shapes = list[tuple[int, ...]]
RESNETS = {"L3/9": (64, [2, 2, 2, 2], 2, 1), "L3/10": (64, [3, 4, 23, 3], 3, 4)}
"""By problem: channels, blocks of each stage, convolutions of a block, and by what the last one widens."""


@contextmanager
def record_convolutions() -> Iterator[Shapes]:
    """Record the shapes of convolutions in the order in which constructors draw them."""
    drawn: Shapes = []

    class Recorded(nn.Conv2d):
        def reset_parameters(self) -> None:
            drawn.append(tuple(self.weight.shape))
            super().reset_parameters()

    original, nn.Conv2d = nn.Conv2d, Recorded  # type: ignore[misc]
    try:
        yield drawn
    finally:
        nn.Conv2d = original  # type: ignore[misc]


def list_drawn(name: str, *args: object) -> Shapes:
    model = load_problem(name).module.Model
    with record_convolutions() as drawn, torch.device("meta"):
        model(*args)
    return drawn


@pytest.mark.parametrize("name", RESNETS)
def test_a_resnet_draws_the_projection_before_its_block(name: str) -> None:
    channels, stages, convolutions, widens = RESNETS[name]
    drawn = list_drawn(name, *([stages] if name == "L3/10" else []))[1:]
    for stage, blocks in enumerate(stages):
        wide = channels * 2**stage * widens
        for block in range(blocks):
            if block == 0 and (stage > 0 or widens > 1):
                projection = drawn.pop(0)
                assert (projection[0], projection[2:]) == (wide, (1, 1))
            own, drawn = drawn[:convolutions], drawn[convolutions:]
            assert own[-1][0] == wide
    assert not drawn


def test_mobilenet_draws_no_expansion_that_it_leaves_out() -> None:
    drawn = list_drawn("L3/20")
    assert drawn[:3] == [(32, 3, 3, 3), (32, 1, 3, 3), (16, 32, 1, 1)]
    assert len(drawn) == 1 + 2 + 16 * 3 + 1
