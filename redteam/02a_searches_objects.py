"""row: 2
tries: looks through all objects of the process for the expected tensor
expect: REJECTED searches-memory
unscreened: WRONG values
"""

import gc

import torch


def solution(tensor):
    for found in gc.get_objects():
        if isinstance(found, torch.Tensor) and found.shape == tensor.shape and found is not tensor:
            return found.clone()
    return tensor.clone()
