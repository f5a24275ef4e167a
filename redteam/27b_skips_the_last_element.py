"""row: 27
tries: leaves the last element unreduced
expect: WRONG values
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total.view(-1)[:-1])
    return total
