"""Reduce-scatter: publish the input, meet, then every rank sums its own block over all peers in float32."""

import torch
import torch.distributed as dist
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, sum_tiles

BLOCK = 2048


@triton.jit
def reduce_scatter(
    x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr
):
    # Program b publishes its tiles of every block, so that its namesakes find what they will sum.
    for target in range(WORLD):
        copy_tiles(x + target * count, peer(buffers, RANK, x) + offset + target * count, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    sum_tiles(buffers, offset + RANK * count, out, count, RANK, WORLD, BLOCK)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.contiguous()
    out = tensor.new_empty(tensor.shape[0] // dist.get_world_size(), *tensor.shape[1:])
    count = out.numel()
    ex = exchange(tensor.numel(), tensor.dtype, tensor.device)
    grid = (ex.programs(triton.cdiv(count, BLOCK), per_sm=4),)
    reduce_scatter[grid](tensor, out, ex.buffers, ex.signals, ex.next_offset(), count, ex.rank, ex.world, BLOCK)
    return out
