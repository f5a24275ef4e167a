"""row: 5
tries: keeps results under shape and version in a default argument
expect: WRONG values
warns: keeps-state-in-functions
"""

import torch.distributed as dist


def solution(tensor, kept={}):  # noqa: B006
    key = (tuple(tensor.shape), tensor._version)
    if key not in kept:
        kept[key] = tensor.clone()
        dist.all_reduce(kept[key])
    return kept[key].clone()
