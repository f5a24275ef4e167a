"""row: 27
tries: leaves one element in a hundred unreduced
expect: WRONG values
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    total.view(-1)[::100] = tensor.view(-1)[::100]
    return total
