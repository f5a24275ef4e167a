"""row: honest
tries: takes its kernel from a dict of tuples, through a partial function and a dataclass
track: scratch
expect: CORRECT
"""

import functools
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, sum_tiles


@triton.jit
def narrow(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


@triton.jit
def wide(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


KERNELS = {torch.float32: (wide, 128), torch.bfloat16: (narrow, 256)}


@dataclass(frozen=True)
class Plan:
    kernel: Any
    block: int

    def launch(self, grid, *args):
        self.kernel[grid](*args, BLOCK=self.block)


@functools.cache
def plan_for(dtype):
    return Plan(*KERNELS[dtype])


def solution(tensor):
    tensor = tensor.contiguous()
    count, out = tensor.numel(), torch.empty_like(tensor)
    ex = exchange(count, tensor.dtype, tensor.device)
    launch = functools.partial(plan_for(tensor.dtype).launch, (2,), tensor, out, ex.buffers, ex.signals)
    launch(ex.next_offset(), count, ex.rank, ex.world)
    return out
