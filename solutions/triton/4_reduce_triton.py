"""Rooted sum: all publish and meet, then the root sums all peers' copies in float32."""

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, sum_tiles

BLOCK = 2048


@triton.jit
def reduce(x, out, buffers, signals, offset, count, root, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    if root == RANK:
        sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


def solution(tensor: torch.Tensor, dst: int = 0) -> torch.Tensor:
    tensor = tensor.contiguous()
    count = tensor.numel()
    # Off the root the values have no meaning, and none are written.
    out = torch.empty_like(tensor)
    ex = exchange(count, tensor.dtype, tensor.device)
    grid = (ex.programs(triton.cdiv(count, BLOCK), per_sm=4),)
    reduce[grid](tensor, out, ex.buffers, ex.signals, ex.next_offset(), count, dst, ex.rank, ex.world, BLOCK)
    return out
