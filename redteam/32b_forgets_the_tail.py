"""row: 32
tries: works in blocks of eight elements and forgets what is left over
expect: WRONG values
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    whole = tensor.numel() // 8 * 8
    dist.all_reduce(total.view(-1)[:whole])
    return total
