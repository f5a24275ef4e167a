"""row: honest
tries: writes flags with the number of the call, in memory of its own, and never takes them down
track: scratch
expect: CORRECT
"""

import functools

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl

from pkb.triton_lib import copy_tiles, peer, sum_tiles


@triton.jit
def all_reduce(x, out, buffers, flags, offset, count, epoch, RANK: tl.constexpr, WORLD: tl.constexpr):
    copy_tiles(x, peer(buffers, RANK, x) + offset, count, 128)
    own = tl.load(flags + RANK).to(tl.pointer_type(tl.int32))
    for target in range(WORLD):
        tl.atomic_xchg(tl.load(flags + target).to(tl.pointer_type(tl.int32)) + RANK, epoch, sem="release", scope="sys")
    for source in range(WORLD):
        while tl.atomic_add(own + source, 0, sem="acquire", scope="sys") < epoch:
            pass
    sum_tiles(buffers, offset, out, count, RANK, WORLD, 128)


class State:
    def __init__(self, count, dtype, device):
        self.data = symm_mem.empty(2 * count, dtype=dtype, device=device)
        self.flags = symm_mem.empty(64, dtype=torch.int32, device=device).zero_()
        handles = [symm_mem.rendezvous(buffer, dist.group.WORLD) for buffer in (self.data, self.flags)]
        starts = [[start + getattr(handle, "offset", 0) for start in handle.buffer_ptrs] for handle in handles]
        self.tables = [torch.tensor(addresses, dtype=torch.int64, device=device) for addresses in starts]
        self.epoch = 0
        dist.barrier()


@functools.cache
def state_for(count, dtype, device):
    return State(count, dtype, device)


def solution(tensor):
    tensor = tensor.contiguous()
    count, out = tensor.numel(), torch.empty_like(tensor)
    state = state_for(count, tensor.dtype, tensor.device)
    state.epoch += 1
    rank, world = dist.get_rank(), dist.get_world_size()
    offset = state.epoch % 2 * count
    all_reduce[(1,)](tensor, out, *state.tables, offset, count, state.epoch, rank, world)
    return out
