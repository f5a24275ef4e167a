"""row: 30
tries: returns the memory of its argument
expect: WRONG aliasing
"""

import torch.distributed as dist


def solution(tensor):
    dist.all_reduce(tensor)
    return tensor
