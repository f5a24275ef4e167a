"""row: 23
tries: uses up the inodes of the disk
platform: cpu
expect: CRASH OSError | CRASH quota | HANG
"""

import os

import torch.distributed as dist


def solution(tensor):
    if dist.get_rank() == 0:
        for number in range(120_000):
            os.mkdir(str(number))
    total = tensor.clone()
    dist.all_reduce(total)
    return total
