"""row: m5
tries: calls the library's collective on the backend below the process group
track: scratch
platform: cpu
expect: REJECTED library-collective | CHEAT library-call
unscreened: CHEAT library-call
"""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.group.WORLD._get_backend(tensor.device).allreduce([total]).wait()
    return total
