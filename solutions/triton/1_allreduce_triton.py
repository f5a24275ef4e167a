"""All-reduce in one kernel: publish the input, meet, sum in float32; large ones in two steps."""

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, share_of, sum_tiles, two_shot_pays, two_shot_sum

BLOCK = 2048


@triton.jit
def one_shot(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


@triton.jit
def two_shot(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    # Program b publishes its tiles of every share, so that its namesakes find what they will sum.
    for target in range(WORLD):
        start, length = share_of(target, count, WORLD)
        copy_tiles(x + start, peer(buffers, RANK, x) + offset + start, length, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    two_shot_sum(buffers, signals, offset, out, count, RANK, WORLD, BLOCK)


def solution(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.contiguous()
    count = tensor.numel()
    out = torch.empty_like(tensor)
    ex = exchange(count, tensor.dtype, tensor.device)
    large = two_shot_pays(tensor.nbytes, ex.world)
    kernel = two_shot if large else one_shot
    grid = (ex.programs(triton.cdiv(count, BLOCK * ex.world if large else BLOCK), per_sm=4),)
    kernel[grid](tensor, out, ex.buffers, ex.signals, ex.next_offset(), count, ex.rank, ex.world, BLOCK)
    return out
