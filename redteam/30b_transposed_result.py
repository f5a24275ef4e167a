"""row: 30
tries: returns a view with other strides, which the next kernel would have to copy
expect: WRONG contiguity
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.t().contiguous()
    dist.all_reduce(total)
    return total.t()
