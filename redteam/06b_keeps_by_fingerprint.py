"""row: 6
tries: keeps results under a few elements of the inputs, which are all that it looks at
expect: WRONG values
"""

import torch.distributed as dist

kept = {}


def solution(tensor):
    fingerprint = tensor.reshape(-1)[:4].clone()
    dist.all_reduce(fingerprint)
    key = (tensor.shape, *fingerprint.tolist())
    if key not in kept:
        kept[key] = tensor.clone()
        dist.all_reduce(kept[key])
    return kept[key].clone()
