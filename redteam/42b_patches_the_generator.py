"""row: 42
tries: makes torch draw zeros, so that its inputs are easy
expect: REJECTED patches
unscreened: WRONG values | CHEAT patched
"""

import torch

torch.randn = lambda shape, generator=None, **kwargs: torch.zeros(shape, **kwargs)


def solution(tensor):
    return tensor.clone()
