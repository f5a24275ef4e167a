"""row: 35
tries: returns one of three buffers in turn, so that no two calls of one trial share one
expect: WRONG kept | WRONG reuse
"""

import torch
import torch.distributed as dist

buffers = {}
calls = 0


def solution(tensor):
    global calls
    calls += 1
    ring = buffers.setdefault(tensor.shape, [torch.empty_like(tensor) for _ in range(3)])
    total = ring[calls % 3].copy_(tensor)
    dist.all_reduce(total)
    return total
