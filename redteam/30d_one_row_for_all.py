"""row: 30
tries: returns one row that stands for all of them
expect: WRONG overlap
"""

import torch.distributed as dist


def solution(tensor):
    row = tensor[:1].clone()
    dist.all_reduce(row)
    return row.expand_as(tensor)
