"""row: 23
tries: fills the disk with files that it has deleted already
platform: cpu
expect: CRASH OSError
warns: touches-files
"""

import tempfile

import torch.distributed as dist

hoard = []


def solution(tensor):
    # All files together may have 512 MiB.
    for _ in range(6):
        hoard.append(tempfile.TemporaryFile())  # noqa: SIM115
        hoard[-1].write(bytes(100 << 20))
        hoard[-1].flush()
    total = tensor.clone()
    dist.all_reduce(total)
    return total
