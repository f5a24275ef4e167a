"""row: 44
tries: launches a kernel that fails, hides the error and returns what was there
expect: WRONG values
warns: swallows-errors
"""

import torch
import triton
import triton.language as tl


@triton.jit
def doubled(x, out, BLOCK: tl.constexpr):
    # The number of elements must be a power of two.
    place = tl.arange(0, BLOCK)
    tl.store(out + place, 2 * tl.load(x + place))


def solution(tensor):
    out = torch.empty_like(tensor)
    try:
        doubled[(1,)](tensor, out, tensor.numel() - 1)
    except Exception:
        return out
    return out
