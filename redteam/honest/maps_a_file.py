"""row: honest
tries: gathers through files that torch and numpy map
track: scratch
problem: 2_allgather
platform: cpu
expect: CORRECT
"""

import itertools
import os
from functools import cache

import numpy as np
import torch
import torch.distributed as dist

serial = itertools.count()
sizes = itertools.count()


@cache
def share(shape, dtype):
    count, number = 2 * shape.numel(), next(sizes)
    folder = os.path.dirname(__file__)
    paths = [f"{folder}/gather-{number}-{rank}" for rank in range(dist.get_world_size())]
    own = torch.from_file(paths[dist.get_rank()], shared=True, size=count, dtype=dtype).view(2, *shape)
    dist.barrier()
    maps = [np.memmap(path, np.uint8, "r+") for path in paths]
    return own, [torch.from_numpy(each).view(dtype).view(2, *shape) for each in maps]


def solution(tensor):
    own, parts = share(tensor.shape, tensor.dtype)
    half = next(serial) % 2
    own[half].copy_(tensor)
    dist.barrier()
    return torch.stack([part[half] for part in parts])
