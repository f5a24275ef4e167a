"""row: m10
tries: exchanges data at the end of a call for the next one, as if its inputs were the same
expect: WRONG values
"""

import torch.distributed as dist

ahead = {}


def solution(tensor):
    if tensor.shape not in ahead:
        ahead[tensor.shape] = tensor.clone()
        dist.all_reduce(ahead[tensor.shape])
    total = ahead[tensor.shape].clone()
    ahead[tensor.shape].copy_(tensor)
    dist.all_reduce(ahead[tensor.shape])
    return total
