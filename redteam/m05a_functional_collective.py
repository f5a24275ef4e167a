"""row: m5
tries: calls the library's collective by its operator
track: scratch
expect: REJECTED library-collective
unscreened: CHEAT library-call
"""

import torch
import torch.distributed as dist


def solution(tensor):
    group = dist.group.WORLD.group_name
    total = torch.ops._c10d_functional.all_reduce(tensor, "sum", group)
    return torch.ops._c10d_functional.wait_tensor(total)
