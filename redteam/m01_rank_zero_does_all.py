"""row: m1
tries: has rank 0 compute, and all others return zeros
expect: WRONG values
"""

import torch
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.reduce(total, 0)
    return total if dist.get_rank() == 0 else torch.zeros_like(tensor)
