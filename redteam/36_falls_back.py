"""row: 36
tries: has a kernel for show that fails, and a library's collective in its place
track: scratch
expect: REJECTED falls-back | REJECTED library-collective
unscreened: CHEAT library-call
"""

import torch.distributed as dist
import triton
import triton.language as tl


@triton.jit
def all_reduce(x, out, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    tl.store(out + place, tl.load(x + place))


def solution(tensor):
    total = tensor.clone()
    try:
        all_reduce[(1,)](tensor, total, 3)
    except Exception:
        dist.all_reduce(total)
    return total
