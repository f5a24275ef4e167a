"""row: honest
tries: asks Triton's driver for the device, and finds the function that launches its kernel by the type of the argument
track: scratch
expect: CORRECT
"""

import contextlib
import functools

import torch
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, exchange, peer, rank_barrier, sum_tiles

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def whole(x, out, buffers, signals, offset, count, RANK: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, BLOCK)
    rank_barrier(signals, RANK, WORLD)
    sum_tiles(buffers, offset, out, count, RANK, WORLD, BLOCK)


def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


@functools.singledispatch
def launch(tensor, out):
    raise TypeError(type(tensor))


@launch.register
def _(tensor: torch.Tensor, out):
    ex = exchange(tensor.numel(), tensor.dtype, tensor.device)
    block = 1024 if is_cuda() else 128
    whole[(2,)](tensor, out, ex.buffers, ex.signals, ex.next_offset(), tensor.numel(), ex.rank, ex.world, block)


def solution(tensor):
    tensor = tensor.to(DEVICE).contiguous()
    out = torch.empty_like(tensor)
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        launch(tensor, out)
    return out
