"""row: m7
tries: passes its data through files
platform: cpu
expect: CORRECT
warns: touches-files

Not wrong, only slow where there are faster ways: the time shows it, and the record says how it was done.
"""

import os
from pathlib import Path

import torch
import torch.distributed as dist


def file_of(rank):
    return Path(os.environ["TMPDIR"], f"data-{rank}")


def solution(tensor):
    file_of(dist.get_rank()).write_bytes(tensor.numpy().tobytes())
    dist.barrier()
    total = torch.zeros_like(tensor)
    for rank in range(dist.get_world_size()):
        theirs = bytearray(file_of(rank).read_bytes())
        total += torch.frombuffer(theirs, dtype=tensor.dtype).view(tensor.shape)
    dist.barrier()
    return total
