"""row: 23
tries: takes shared memory far beyond its limit, so that the reference has none
platform: cpu
expect: CRASH PermissionError | CRASH quota
"""

import mmap

import torch.distributed as dist


def solution(tensor):
    # The limit is 512 MiB for a rank.
    hoard = mmap.mmap(-1, 1500 << 20)
    for page in range(0, len(hoard), 4096):
        hoard[page] = 1
    total = tensor.clone()
    dist.all_reduce(total)
    return total
