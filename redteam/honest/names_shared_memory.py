"""row: honest
tries: gathers through Python's named shared memory, on platforms whose ranks compute on the CPU
track: scratch
problem: 2_allgather
platform: cpu
expect: CORRECT
"""

import itertools
from functools import cache
from multiprocessing.shared_memory import SharedMemory

import torch
import torch.distributed as dist

serial = itertools.count()
sizes = itertools.count()


@cache
def share(shape, dtype):
    size, number = 2 * shape.numel() * dtype.itemsize, next(sizes)
    own = SharedMemory(f"gather-{number}-{dist.get_rank()}", create=True, size=size)
    dist.barrier()
    found = [SharedMemory(f"gather-{number}-{rank}") for rank in range(dist.get_world_size())]
    dist.barrier()
    own.unlink()
    views = [torch.frombuffer(each.buf, dtype=dtype, count=2 * shape.numel()).view(2, *shape) for each in found]
    return found, views


def solution(tensor):
    _, views = share(tensor.shape, tensor.dtype)
    half = next(serial) % 2
    views[dist.get_rank()][half].copy_(tensor)
    dist.barrier()
    return torch.stack([view[half] for view in views])
