"""Block-wise FP8 quantisation of each rank's rows, followed by an all-gather of codes and scales.

Every run of `block_size` values along the last dim shares one float32 scale, its largest magnitude over 448. Codes are
the quotients rounded to the nearest e4m3fn value. A block of zeros has codes 0 and scale 0. Rank i's rows come i-th.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link

LARGEST_CODE = 448.0


def quantize(x: torch.Tensor, block_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    blocks = x.to(torch.float32).unflatten(-1, (-1, block_size))
    scales = blocks.abs().amax(dim=-1) / LARGEST_CODE
    divisors = torch.where(scales == 0, torch.ones_like(scales), scales)
    quotients = (blocks / divisors.unsqueeze(-1)).clamp(-LARGEST_CODE, LARGEST_CODE)
    return quotients.to(torch.float8_e4m3fn).flatten(-2), scales


def gather_rows(x: torch.Tensor) -> torch.Tensor:
    gathered = x.new_empty(dist.get_world_size() * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(gathered, x.contiguous())
    return gathered


def solution(local_tensor: torch.Tensor, block_size: int = 128) -> tuple[torch.Tensor, torch.Tensor]:
    assert local_tensor.shape[-1] % block_size == 0, "the last dim must be a multiple of block_size"
    codes, scales = quantize(local_tensor, block_size)
    if not dist.is_initialized():
        return codes, scales
    # Not every transport carries FP8; all carry bytes.
    return gather_rows(codes.view(torch.uint8)).view(torch.float8_e4m3fn), gather_rows(scales)


PROBLEM = Problem(
    category="Tensor Parallel",
    source="1x128 FP8 activation quantisation of DeepSeek-V3, gathered as in the FP8 trainers of the VeOmni family",
    sizes={"tiny": Size(16, 256), "paper": Size(1024, 1024), "large": Size(32768, 8192)},
    requires={"the N columns are cut into blocks of 128": lambda case: case.n % BLOCK == 0},
    deviations={
        "values": (
            "blocks differ in scale by up to 2^12, some are zero, and no value lies midway between two codes, where "
            "the last bit of a division decides; the published values are normal, so that one scale almost serves all "
            "blocks"
        ),
    },
)

BLOCK = 128
LEAST_EXPONENT, MANTISSA_BITS = -6, 3
TIE_MARGIN = 1e-3


def inputs(case):
    grid = case.m, case.n // BLOCK
    # Scales that differ by up to 2^12 from block to block, and blocks without any value.
    magnitude = 2.0 ** case.rand(*grid, 1, low=-6, high=6, dtype=torch.float32)
    magnitude = torch.where(case.randint(0, 8, *grid, 1) == 0, torch.zeros_like(magnitude), magnitude)
    blocks = (case.randn(*grid, BLOCK, dtype=torch.float32) * magnitude).to(case.dtype)
    return away_from_ties(blocks).reshape(case.m, case.n), BLOCK


def away_from_ties(blocks):
    """Zero in place of values so near the middle between two codes that an inexact division could give either."""
    wide = blocks.double().abs()
    quotients = wide * LARGEST_CODE / wide.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    steps = 2.0 ** (quotients.log2().floor().clamp(min=LEAST_EXPONENT) - MANTISSA_BITS)
    near = (quotients / steps % 1 - 0.5).abs() < TIE_MARGIN
    return torch.where(near | (blocks == 0), torch.zeros_like(blocks), blocks)


def cost(case):
    elements = case.m * case.n
    quantized = elements + 4 * elements / BLOCK
    return Cost(
        # A maximum and a division per value. The reference also makes magnitudes and clamps quotients.
        flops=2 * elements,
        hbm=elements * case.itemsize + case.world * quantized,
        link=link.all_gather(case.world * quantized, case.world),
    )


def one_scale_per_row(local_tensor, block_size=128):
    codes, scales = quantize(local_tensor, local_tensor.shape[-1])
    scales = scales.expand(-1, local_tensor.shape[-1] // block_size)
    return gather_rows(codes.view(torch.uint8)).view(torch.float8_e4m3fn), gather_rows(scales)


def scale_one_for_zero_blocks(local_tensor, block_size=128):
    codes, scales = solution(local_tensor, block_size)
    return codes, torch.where(scales == 0, torch.ones_like(scales), scales)


def own_scales_for_all_ranks(local_tensor, block_size=128):
    codes, _ = solution(local_tensor, block_size)
    _, scales = quantize(local_tensor, block_size)
    return codes, scales.repeat(dist.get_world_size(), 1)


MUTANTS = {
    "one_scale_per_row": one_scale_per_row,
    "scale_one_for_zero_blocks": scale_one_for_zero_blocks,
    "own_scales_for_all_ranks": own_scales_for_all_ranks,
}
