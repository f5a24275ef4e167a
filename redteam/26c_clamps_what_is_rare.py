"""row: 26
tries: leaves out what normal values never reach
expect: WRONG values
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clamp(-20, 20)
    dist.all_reduce(total)
    return total
