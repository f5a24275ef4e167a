"""row: honest
tries: calls a functional collective, which imports torch's compiler, and waits for it
expect: CORRECT
"""

import torch.distributed as dist
import torch.distributed._functional_collectives as functional


def solution(tensor):
    return functional.wait_tensor(functional.all_reduce(tensor, "sum", dist.group.WORLD))
