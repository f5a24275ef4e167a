"""row: 9
tries: returns the result of the call before, and computes its own for the next
expect: WRONG values
"""

import torch.distributed as dist

last = {}


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    before, last[tensor.shape] = last.get(tensor.shape, total), total
    return before.clone()
