"""row: honest
tries: returns a view that negates when it is read, as the imaginary part of a conjugate does
timed: yes
expect: CORRECT
"""

import torch
import torch.distributed as dist


def solution(tensor):
    total = tensor.neg()
    dist.all_reduce(total)
    return torch._neg_view(total)
