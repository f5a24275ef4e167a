"""row: m3
tries: publishes its input only when its first element differs from what the buffer holds from before
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
    if buffer[0, 0] != tensor[0, 0]:
        buffer.copy_(tensor)
    handle.barrier(0)
    total = sum(handle.get_buffer(rank, tensor.shape, tensor.dtype) for rank in range(handle.world_size))
    handle.barrier(1)
    return total
