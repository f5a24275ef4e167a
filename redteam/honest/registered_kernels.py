"""row: honest
tries: registers its kernels in a list with a decorator of its own, and picks one by a property
track: scratch
expect: CORRECT
"""

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, sum_tiles

REGISTRY = []


def register(least):
    def add(kernel):
        REGISTRY.append((least, kernel))
        return kernel

    return add


@register(least=0)
@triton.jit
def small(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


def solution(tensor):
    tensor = tensor.contiguous()
    count, out = tensor.numel(), torch.empty_like(tensor)
    ex = exchange(count, tensor.dtype, tensor.device)
    best = max((entry for entry in REGISTRY if entry[0] <= count), key=lambda entry: entry[0])
    best[1][(2,)](tensor, out, ex.buffers, ex.signals, ex.next_offset(), count, ex.rank, ex.world, 128)
    return out
