"""row: honest
tries: wraps its kernel into an operator of torch.library
track: scratch
expect: CORRECT
"""

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, sum_tiles


@triton.jit
def whole(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


@torch.library.custom_op("honest::all_reduce", mutates_args=())
def all_reduce(tensor: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(tensor)
    ex = exchange(tensor.numel(), tensor.dtype, tensor.device)
    whole[(2,)](tensor, out, ex.buffers, ex.signals, ex.next_offset(), tensor.numel(), ex.rank, ex.world, 128)
    return out


def solution(tensor):
    return torch.ops.honest.all_reduce(tensor.contiguous())
