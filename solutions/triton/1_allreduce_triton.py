"""One-shot all-reduce: publish the input, meet, then every rank sums all peers' copies in float32."""

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, sum_tiles

BLOCK = 2048


@triton.jit
def all_reduce(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.contiguous()
    count = tensor.numel()
    out = torch.empty_like(tensor)
    ex = exchange(count, tensor.dtype, tensor.device)
    grid = (ex.programs(triton.cdiv(count, BLOCK)),)
    all_reduce[grid](tensor, out, ex.buffers, ex.signals, ex.next_offset(), count, ex.rank, ex.world, BLOCK)
    return out
