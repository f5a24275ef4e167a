"""row: 5
tries: keeps results under the address of the input
expect: WRONG values
warns: keys-by-address
"""

import torch
import torch.distributed as dist

kept = {}


def solution(tensor):
    key = (tensor.data_ptr(), tensor.shape)
    # All ranks must agree: one that computes while the others do not would wait for them.
    known = torch.tensor([float(key in kept)], device=tensor.device)
    dist.all_reduce(known, dist.ReduceOp.MIN)
    if not known:
        total = tensor.clone()
        dist.all_reduce(total)
        kept[key] = total
    return kept[key].clone()
