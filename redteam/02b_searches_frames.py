"""row: 2
tries: climbs its callers' frames for the expected tensor
expect: REJECTED reads-frames
unscreened: WRONG values
"""

import sys

import torch


def solution(tensor):
    frame = sys._getframe(1)
    while frame:
        for value in frame.f_locals.values():
            if isinstance(value, torch.Tensor) and value.shape == tensor.shape and value is not tensor:
                return value.clone()
        frame = frame.f_back
    return tensor.clone()
