"""3D convolution with the input channels spread over the ranks: partial results are summed, then the bias is added.

Stride, padding and dilation are one number or one per dim (time, height, width). The bias may be None; it is
the same on all ranks and counts once.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link


def solution(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: int | tuple[int, int, int],
    padding: int | tuple[int, int, int],
    dilation: int | tuple[int, int, int],
    groups: int = 1,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    total = F.conv3d(input, weight, None, stride, padding, dilation, groups)
    dist.all_reduce(total, group=group)
    return total if bias is None else total + bias.view(1, -1, 1, 1, 1)


PROBLEM = Problem(
    category="Tensor Parallel",
    source="channel-parallel 3D convolution of Open-Sora 2.0 (HunyuanVideo VAE)",
    sizes={"tiny": Size(16, 8), "paper": Size(512, 64), "large": Size(512, 192)},
    requires={"each rank needs at least one of the M input channels": lambda case: case.m >= case.world},
    deviations={
        "values": "`weight` is scaled by its fan-in, and the bias is random",
        "variants": (
            "later trials pose other `stride`, `padding` and `dilation`, also different in each dim, two `groups` "
            "(`weight`), and no `bias`; published calls are always (1, 0, 1)"
        ),
    },
)

KERNEL = 3
# Stride, padding and dilation of each trial; the first is the published one.
SETTINGS = [
    (1, 0, 1),
    (2, 1, 1),
    ((1, 2, 1), (0, 1, 2), (1, 1, 2)),
    (1, 1, 1),
    ((2, 1, 1), (1, 0, 1), 1),
]


def shape(case):
    """Channels of a rank, their convolution groups, and the extent of the input in time, height and width."""
    channels = case.m // case.world
    grouped = case.trial == 3 and channels % 2 == 0 and case.m % 2 == 0
    return channels, 2 if grouped else 1, (case.n // 4 + 3, case.n + 2, case.n + 2)


def inputs(case):
    channels, groups, extent = shape(case)
    fan_in = case.world * channels // groups * KERNEL**3
    return (
        case.randn(1, channels, *extent),
        case.randn(case.m, channels // groups, *(KERNEL,) * 3, scale=fan_in**-0.5),
        None if case.trial == 2 else case.shared.randn(case.m),
        *SETTINGS[case.trial % len(SETTINGS)],
        groups,
    )


def out_pixels(case):
    *_, extent = shape(case)
    setting = [value if isinstance(value, tuple) else (value,) * 3 for value in SETTINGS[case.trial % len(SETTINGS)]]
    pixels = 1
    for size, stride, padding, dilation in zip(extent, *setting, strict=True):
        pixels *= (size + 2 * padding - dilation * (KERNEL - 1) - 1) // stride + 1
    return pixels


def cost(case):
    channels, groups, (frames, height, width) = shape(case)
    outputs = case.m * out_pixels(case)
    weights = case.m * channels // groups * KERNEL**3
    elements = channels * frames * height * width + weights + outputs
    return Cost(
        flops=2 * weights * out_pixels(case) + outputs * (case.world - 1) / case.world,
        hbm=elements * case.itemsize,
        link=link.all_reduce(outputs * case.itemsize, case.world),
    )


def bias_on_every_rank(input, weight, bias, stride, padding, dilation, groups=1, group=None):
    total = F.conv3d(input, weight, bias, stride, padding, dilation, groups)
    dist.all_reduce(total, group=group)
    return total


def own_channels_only(input, weight, bias, stride, padding, dilation, groups=1, group=None):
    return F.conv3d(input, weight, bias, stride, padding, dilation, groups)


def bias_forgotten(input, weight, bias, *setting):
    return solution(input, weight, None, *setting)


def padding_repeats_the_border(input, weight, bias, stride, padding, dilation, groups=1, group=None):
    time, height, width = padding if isinstance(padding, tuple) else (padding,) * 3
    padded = F.pad(input, (width, width, height, height, time, time), mode="replicate")
    return solution(padded, weight, bias, stride, 0, dilation, groups, group)


MUTANTS = {
    "bias_added_before_the_sum": bias_on_every_rank,
    "own_channels_only": own_channels_only,
    "bias_forgotten": bias_forgotten,
    "padding_repeats_the_border": padding_repeats_the_border,
}
