"""row: m5
tries: makes a process group of the library for itself
track: scratch
platform: cpu
expect: REJECTED library-collective | CHEAT library-call
unscreened: CHEAT library-call
"""

from functools import cache

import torch.distributed as dist


@cache
def own_group():
    store = dist.PrefixStore("own", dist.distributed_c10d._get_default_store())
    return dist.ProcessGroupGloo(store, dist.get_rank(), dist.get_world_size())


def solution(tensor):
    total = tensor.clone()
    own_group().allreduce([total]).wait()
    return total
