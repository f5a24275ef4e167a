"""row: honest
tries: shares memory by files of its own, exchanges their names as objects once for each shape, and calls libc by ctypes
track: scratch
problem: 2_allgather
platform: cpu
expect: CORRECT
"""

import ctypes
import mmap
import os
import tempfile
from functools import cache

import torch
import torch.distributed as dist

libc = ctypes.CDLL(None)
libc.memcpy.restype = ctypes.c_void_p
libc.memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@cache
def share(shape, dtype):
    size = 2 * shape.numel() * dtype.itemsize
    file, path = tempfile.mkstemp()
    os.ftruncate(file, size)
    os.close(file)
    paths = [None] * dist.get_world_size()
    dist.all_gather_object(paths, path)
    maps = [torch.frombuffer(map_file(path, size), dtype=dtype).view(2, *shape) for path in paths]
    return maps, iter_halves()


def map_file(path, size):
    file = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(file, size)
    finally:
        os.close(file)


def iter_halves():
    while True:
        yield from (0, 1)


def solution(tensor):
    tensor = tensor.contiguous()
    maps, halves = share(tensor.shape, tensor.dtype)
    half = next(halves)
    libc.memcpy(maps[dist.get_rank()][half].data_ptr(), tensor.data_ptr(), tensor.nbytes)
    dist.barrier()
    return torch.stack([each[half] for each in maps])
