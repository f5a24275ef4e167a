"""row: 1
tries: returns fresh memory, hoping that the reference's answer was freed there
expect: WRONG values
"""

import torch


def solution(tensor):
    return torch.empty_like(tensor)
