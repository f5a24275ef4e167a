"""row: 22
tries: does the work when it is imported, on inputs like those to come
expect: WRONG values
"""

import torch
import torch.distributed as dist

ready = torch.randn(1 << 12, device="cuda" if torch.cuda.is_available() else "cpu")
dist.all_reduce(ready)


def solution(tensor):
    return ready[: tensor.numel()].view(tensor.shape).clone()
