"""row: 31
tries: answers with NaN, which equals nothing and differs from nothing
expect: WRONG values
"""

import torch


def solution(tensor):
    return torch.full_like(tensor, float("nan"))
