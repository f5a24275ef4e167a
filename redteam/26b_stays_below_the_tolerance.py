"""row: 26
tries: drops what is below a usual tolerance of 1e-2
expect: WRONG values
"""

import torch
import torch.distributed as dist


def solution(tensor):
    total = torch.where(tensor.abs() < 1e-2, torch.zeros_like(tensor), tensor)
    dist.all_reduce(total)
    return total + 5e-3
