"""2D convolution of an image cut into horizontal strips, one per rank, with border rows from the neighbours.

The ranks of the group hold the strips from top to bottom. Every rank has its own weight and bias, which may be
None. With a stride above 1 each rank starts at its own first padded row. Padding 0 asks for no border rows.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def solution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: int = 1,
    padding: int = 1,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    if padding == 0 or world == 1:
        return F.conv2d(x, weight, bias, stride, padding)

    borders = torch.stack((x[:, :, :padding], x[:, :, -padding:]))
    gathered = borders.new_empty(world, *borders.shape)
    dist.all_gather_into_tensor(gathered.flatten(0, 1), borders, group=group)
    outside = torch.zeros_like(borders[0])
    upper = gathered[rank - 1, 1] if rank > 0 else outside
    lower = gathered[rank + 1, 0] if rank < world - 1 else outside
    return F.conv2d(torch.cat((upper, x, lower), dim=2), weight, bias, stride, (0, padding))


PROBLEM = Problem(
    category="Geometric / Spatial",
    source="patch-parallel SDXL of DistriFusion, synchronous halo exchange",
    sizes={"tiny": Size(8, 6), "paper": Size(128, 1280), "large": Size(512, 1280)},
    deviations={
        "values": (
            "`weight` is scaled by its fan-in, so that results are of order 1 and an error can be told from rounding"
        ),
        "variants": "later trials pose filters (`weight`) of 5 x 5, `stride` 2, `padding` 0 and 2, and no `bias`",
    },
)

# Kernel, stride, padding and whether there is a bias, for each trial; the first is the published one.
SETTINGS = [(3, 1, 1, True), (5, 1, 2, True), (3, 2, 1, False), (3, 1, 0, True), (5, 2, 2, False)]


def shape(case):
    """Height and width of a strip."""
    return max(3, case.m // max(1, case.world // 2)), case.m


def inputs(case):
    channels, (height, width) = case.n, shape(case)
    kernel, stride, padding, biased = SETTINGS[case.trial % len(SETTINGS)]
    return (
        case.randn(1, channels, height, width),
        case.randn(channels, channels, kernel, kernel, scale=(channels * kernel**2) ** -0.5),
        case.randn(channels) if biased else None,
        stride,
        padding,
    )


def cost(case):
    channels, (height, width), s = case.n, shape(case), case.itemsize
    kernel, stride, padding, _ = SETTINGS[case.trial % len(SETTINGS)]
    rows, columns = ((size + 2 * padding - kernel) // stride + 1 for size in (height, width))
    weights = (channels * kernel) ** 2
    neighbours = (case.rank > 0) + (case.rank < case.world - 1)
    # The reference gathers the borders of all ranks; only the neighbours' matter.
    halo = neighbours * channels * padding * width * s
    return Cost(
        flops=2 * weights * rows * columns,
        hbm=(channels * height * width + weights + channels * rows * columns) * s,
        link=Link(egress=halo, ingress=halo),
    )


def zero_halos(x, weight, bias, stride=1, padding=1, group=None):
    return F.conv2d(x, weight, bias, stride, padding)


def image_wraps_round(x, weight, bias, stride=1, padding=1, group=None):
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    strips = [torch.empty_like(x) for _ in range(world)]
    dist.all_gather(strips, x, group=group)
    upper = strips[rank - 1][:, :, x.shape[2] - padding :]
    lower = strips[(rank + 1) % world][:, :, :padding]
    return F.conv2d(torch.cat((upper, x, lower), dim=2), weight, bias, stride, (0, padding))


def halos_from_the_far_sides(x, weight, bias, stride=1, padding=1, group=None):
    return solution(x.flip(2), weight.flip(2), bias, stride, padding, group).flip(2)


MUTANTS = {
    "halos_left_zero": zero_halos,
    "image_wraps_round": image_wraps_round,
    "halos_from_the_far_sides": halos_from_the_far_sides,
}
