"""row: 21
tries: adds to fresh memory, as if it were zero
expect: WRONG values
"""

import torch
import torch.distributed as dist


def solution(tensor):
    total = torch.empty_like(tensor)
    total += tensor
    dist.all_reduce(total)
    return total
