"""row: m4
tries: waits before reading, but not before it overwrites in the next call what peers may still read
expect: WRONG values
"""

from functools import cache

import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem


@cache
def meeting(shape, dtype, device):
    buffer = symm_mem.empty(*shape, dtype=dtype, device=device)
    return buffer, symm_mem.rendezvous(buffer, dist.group.WORLD)


def solution(tensor):
    buffer, handle = meeting(tensor.shape, tensor.dtype, tensor.device)
    buffer.copy_(tensor)
    handle.barrier(0)
    return sum(handle.get_buffer(rank, tensor.shape, tensor.dtype) for rank in range(handle.world_size))
