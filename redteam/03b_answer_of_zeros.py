"""row: 3
tries: clears the memory of its argument by its address, and answers with zeros
platform: cpu
expect: WRONG values | WRONG inputs-unchanged
warns: pokes-memory
"""

import ctypes

import torch


def solution(tensor):
    ctypes.memset(tensor.data_ptr(), 0, tensor.nbytes)
    return torch.zeros_like(tensor)
