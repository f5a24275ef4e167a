"""row: m6
tries: leaves one rank out of the collective
expect: HANG
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    if dist.get_rank() == 0:
        dist.all_reduce(total)
    return total
