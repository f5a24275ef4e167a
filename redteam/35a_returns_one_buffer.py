"""row: 35
tries: returns the same memory in every call
expect: WRONG reuse
warns: returns-kept-results
"""

import torch.distributed as dist

buffers = {}


def solution(tensor):
    total = buffers.setdefault(tensor.shape, tensor.clone())
    total.copy_(tensor)
    dist.all_reduce(total)
    return total
