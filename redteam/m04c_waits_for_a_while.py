"""row: m4
tries: waits for longer than ranks are usually late, in place of a barrier
expect: WRONG values
"""

import time
from functools import cache

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem


@cache
def meeting(shape, dtype, device):
    buffer = symm_mem.empty(*shape, dtype=dtype, device=device)
    return buffer, symm_mem.rendezvous(buffer, dist.group.WORLD)


def wait(device):
    if device.type == "cpu":
        time.sleep(0.045)
    else:
        torch.cuda._sleep(5_000_000)


def solution(tensor):
    buffer, handle = meeting(tensor.shape, tensor.dtype, tensor.device)
    wait(tensor.device)
    buffer.copy_(tensor)
    wait(tensor.device)
    return sum(handle.get_buffer(rank, tensor.shape, tensor.dtype) for rank in range(handle.world_size))
