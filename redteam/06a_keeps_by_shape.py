"""row: 6
tries: keeps results under shape and dtype
expect: WRONG values
"""

import torch.distributed as dist

kept = {}


def solution(tensor):
    key = (tensor.shape, tensor.dtype)
    if key not in kept:
        kept[key] = tensor.clone()
        dist.all_reduce(kept[key])
    return kept[key].clone()
