"""Block-wise dequantisation of one chunk per rank, followed by an all-to-all of the chunks.

Chunk d of `local_y` is for rank d, which lays the chunks out in the order of their sources. Blocks are runs of
`block_size` values of a flattened chunk and may span its rows; only the flat order of `local_s` counts. Codes are FP8
(e4m3fn), scales and the result float32, whatever the dtype of the run; other float dtypes must work as well.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def dequantize(y: torch.Tensor, s: torch.Tensor, block_size: int) -> torch.Tensor:
    blocks = y.to(torch.float32).reshape(-1, block_size)
    return (blocks * s.to(torch.float32).reshape(-1, 1)).reshape(y.shape)


def solution(local_y: torch.Tensor, local_s: torch.Tensor, block_size: int = 128) -> torch.Tensor:
    assert local_y.shape[0] == dist.get_world_size(), "local_y must hold one chunk per rank"
    assert local_y[0].numel() % block_size == 0, "a chunk must be a multiple of block_size"
    chunks = dequantize(local_y, local_s, block_size)
    received = torch.empty_like(chunks)
    dist.all_to_all_single(received, chunks)
    return received


PROBLEM = Problem(
    category="Tensor Parallel",
    source="block-wise FP8 tensors of DeepSeek-V3, exchanged as in the FP8 trainers of the VeOmni family",
    sizes={"tiny": Size(8, 48), "paper": Size(1024, 1024), "large": Size(16384, 8192)},
    requires={"the M x N values of a chunk are cut into blocks of 128": lambda case: case.m * case.n % BLOCK == 0},
    deviations={
        "dtypes": (
            "`local_y` is float8_e4m3fn and `local_s` is float32, as quantisation leaves them; the published "
            "generator passes both in the run's dtype, which no kernel of this kind meets"
        ),
        "values": (
            "codes and scales as quantisation makes them, each block with a magnitude of its own; the published "
            "scales are normal values, half of them negative"
        ),
    },
)

BLOCK = 128
LARGEST_CODE = 448.0


def inputs(case):
    blocks = case.world, case.m * case.n // BLOCK
    values = case.randn(*blocks, BLOCK, dtype=torch.float32)
    scales = values.abs().amax(dim=-1) / LARGEST_CODE
    codes = (values / scales.unsqueeze(-1)).to(torch.float8_e4m3fn)
    # A magnitude of its own for each block: a neighbour's scale is no stand-in.
    scales = scales * 2.0 ** case.rand(*blocks, low=-2, high=2, dtype=torch.float32)
    return codes.reshape(case.world, case.m, case.n), scales, BLOCK


def cost(case):
    elements = case.world * case.m * case.n
    quantized = elements + 4 * elements / BLOCK
    return Cost(
        flops=elements,
        hbm=quantized + 4 * elements,
        # The reference exchanges float32 values, almost four times the bytes of codes and scales.
        link=link.all_to_all(quantized, case.world),
    )


def own_scales_for_received_codes(local_y, local_s, block_size=128):
    received = torch.empty_like(local_y.view(torch.uint8))
    dist.all_to_all_single(received, local_y.view(torch.uint8))
    return dequantize(received.view(local_y.dtype), local_s, block_size)


def exchange_left_out(local_y, local_s, block_size=128):
    return dequantize(local_y, local_s, block_size)


def one_scale_per_chunk(local_y, local_s, block_size=128):
    first = local_s.reshape(local_y.shape[0], -1)[:, :1]
    return solution(local_y, first.expand(-1, local_y[0].numel() // block_size), block_size)


MUTANTS = {
    "own_scales_for_received_codes": own_scales_for_received_codes,
    "exchange_left_out": exchange_left_out,
    "one_scale_per_chunk": one_scale_per_chunk,
}
