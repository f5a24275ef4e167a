"""Average of gradients over the ranks, each quantised once to int8 with one scale per block.

Blocks of `block_size` count from element 0 of the flattened gradient; the last one may be short. A block's scale
is its largest magnitude over 127, in float32; codes are rounded half to even. What is averaged, in float32, are
the values that codes and scales stand for; the average is not quantised again.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def in_blocks(values: torch.Tensor, block_size: int) -> torch.Tensor:
    flat = values.flatten()
    return F.pad(flat, (0, -flat.numel() % block_size)).view(-1, block_size)


def block_scales(blocks: torch.Tensor) -> torch.Tensor:
    return blocks.abs().amax(dim=1, keepdim=True).to(torch.float32).clamp(min=1e-8) / 127


def quantised(values: torch.Tensor, block_size: int) -> torch.Tensor:
    """The float32 values that the int8 codes stand for."""
    blocks = in_blocks(values, block_size)
    scales = block_scales(blocks)
    codes = (blocks.to(torch.float32) / scales).round().clamp(-127, 127).to(torch.int8)
    return (codes.to(torch.float32) * scales).flatten()[: values.numel()]


def solution(flat_grad: torch.Tensor, block_size: int) -> torch.Tensor:
    assert block_size >= 1
    mean = quantised(flat_grad, block_size)
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    return mean.to(flat_grad.dtype).view(flat_grad.shape)


PROBLEM = Problem(
    category="Data Parallel",
    source="block-quantised gradient communication (ZeRO++, arXiv 2306.10209; 8-bit gradient compression)",
    sizes={"tiny": Size(3, 421), "paper": Size(1024, 1024), "large": Size(32768, 16384)},
    deviations={
        "values": (
            "each block has an outlier and a scale of its own, one block is zero, and no value lies midway between "
            "two codes, where the last bit of a division decides"
        ),
        "variants": "`flat_grad` is a matrix in one trial",
    },
)

OUTLIER = 16.0
ZERO_BLOCK = 1


def shape(case):
    """Elements and block size."""
    return max(case.m * case.n, 64 * case.world), min(128, max(16, case.n // 4))


def away_from_ties(flat, block_size):
    """Values near the middle between two codes are moved to a code: there another order of operations decides."""
    blocks = in_blocks(flat, block_size)
    scales = block_scales(blocks)
    steps = blocks.to(torch.float32) / scales
    near_tie = (steps - steps.floor() - 0.5).abs() < 0.01
    moved = torch.where(near_tie, (steps.round() * scales).to(flat.dtype), blocks)
    return moved.flatten()[: flat.numel()]


def inputs(case):
    elements, block_size = shape(case)
    count = -(-elements // block_size)
    # Blocks of different size, each with one outlier, so that steps are coarse and no scale serves two blocks.
    size = 2 ** case.rand(count, 1, low=-1.5, high=1.5, dtype=torch.float32)
    blocks = case.randn(count, block_size, dtype=torch.float32)
    outlier = (2.0 * case.randint(0, 2, count, 1) - 1) * OUTLIER
    blocks.scatter_(1, case.randint(0, block_size, count, 1), outlier)
    blocks *= size
    blocks[ZERO_BLOCK] = 0
    flat = away_from_ties(blocks.flatten()[:elements].to(case.dtype), block_size)
    is_matrix = case.trial == 2 and elements == case.m * case.n
    return flat.view(case.m, case.n) if is_matrix else flat, block_size


def cost(case):
    elements, block_size = shape(case)
    others, s = case.world - 1, case.itemsize
    coded = elements + 4 * -(-elements // block_size)
    # Codes go to all, or to an owner of each slice who returns the average. The reference sends float32 sums.
    sent = min(others * coded, others / case.world * (coded + elements * s))
    return Cost(
        # Maximum, division, rounding and product of every value, and of the average a rank's share.
        flops=5 * elements,
        hbm=2 * elements * s,
        link=Link(egress=sent, ingress=sent),
    )


def averaged(values, like):
    dist.all_reduce(values)
    return (values / dist.get_world_size()).to(like.dtype).view(like.shape)


def not_quantised(flat_grad, block_size):
    return averaged(flat_grad.flatten().to(torch.float32, copy=True), flat_grad)


def one_scale_for_all_blocks(flat_grad, block_size):
    return solution(flat_grad, flat_grad.numel())


def average_quantised_again(flat_grad, block_size):
    average = averaged(quantised(flat_grad, block_size), flat_grad)
    return quantised(average, block_size).to(flat_grad.dtype).view(flat_grad.shape)


def truncated_not_rounded(flat_grad, block_size):
    blocks = in_blocks(flat_grad, block_size)
    scales = block_scales(blocks)
    values = (blocks.to(torch.float32) / scales).trunc() * scales
    return averaged(values.flatten()[: flat_grad.numel()], flat_grad)


def blocks_half_as_long(flat_grad, block_size):
    return solution(flat_grad, block_size // 2)


MUTANTS = {
    "not_quantised": not_quantised,
    "one_scale_for_all_blocks": one_scale_for_all_blocks,
    "average_quantised_again": average_quantised_again,
    "truncated_not_rounded": truncated_not_rounded,
    "blocks_half_as_long": blocks_half_as_long,
}
