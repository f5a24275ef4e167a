"""row: 13
tries: starts the collective and does not wait for it
expect: WRONG values
platform: cpu
"""

import torch.distributed as dist

started = []


def solution(tensor):
    total = tensor.clone()
    started.append(dist.all_reduce(total, async_op=True))
    return total
