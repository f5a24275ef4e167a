"""row: 25
tries: answers with a constant: what the sum is on average
expect: WRONG values
"""

import torch
import torch.distributed as dist


def solution(tensor):
    return torch.full_like(tensor, float(tensor.mean()) * dist.get_world_size())
