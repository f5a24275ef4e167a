"""row: m3
tries: counts calls in the signal pads and never takes the signals down
platform: cpu
expect: WRONG signal-pads
"""

import time
from functools import cache

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

calls = 0


@cache
def meeting(shape, dtype, device):
    buffer = symm_mem.empty(2, *shape, dtype=dtype, device=device)
    return buffer, symm_mem.rendezvous(buffer, dist.group.WORLD)


def meet(handle, count):
    world, rank = handle.world_size, handle.rank
    pads = [handle.get_signal_pad(peer, [world], torch.int32) for peer in range(world)]
    for pad in pads:
        pad[rank] = count
    while pads[rank].min() < count:
        time.sleep(1e-4)


def solution(tensor):
    global calls
    calls += 1
    buffer, handle = meeting(tensor.shape, tensor.dtype, tensor.device)
    half = calls % 2
    buffer[half] = tensor
    meet(handle, calls)
    shape = (2, *tensor.shape)
    return sum(handle.get_buffer(rank, shape, tensor.dtype)[half] for rank in range(handle.world_size))
