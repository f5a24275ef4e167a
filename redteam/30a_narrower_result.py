"""row: 30
tries: returns half the bytes: bfloat16 for float32
expect: WRONG dtype
warns: narrows-values
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total.bfloat16()
