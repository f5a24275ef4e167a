"""row: honest
tries: returns a transposed view, which the clock includes making dense
timed: yes
expect: CORRECT
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.t().contiguous()
    dist.all_reduce(total)
    return total.t()
