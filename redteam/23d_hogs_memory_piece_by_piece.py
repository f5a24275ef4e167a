"""row: 23
tries: hides its hoard from the kernel's books: each piece is shared memory that it touches and lets go of
platform: cpu
expect: CRASH OSError
warns: touches-files
"""

import mmap
import os

import torch.distributed as dist

hoard = []


def solution(tensor):
    # The limit is 512 MiB for a rank, and 1 GiB for both.
    for piece in range(15):
        with open(f"/dev/shm/{dist.get_rank()}-{piece}", "w+b") as file:
            os.posix_fallocate(file.fileno(), 0, 100 << 20)
            hoard.append(mmap.mmap(file.fileno(), 100 << 20))
        hoard[-1].madvise(mmap.MADV_DONTNEED)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
