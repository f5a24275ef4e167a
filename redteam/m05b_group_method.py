"""row: m5
tries: calls the library's collective as a method of the process group
track: scratch
expect: REJECTED library-collective
unscreened: CHEAT library-call
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.group.WORLD.allreduce([total]).wait()
    return total
