"""row: 32
tries: is written for the shape in the prompt, and copies its input at others
expect: WRONG values
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    if tensor.shape == (16, 8):
        dist.all_reduce(total)
    return total
