"""row: m5
tries: calls the process group's method by a name in a string
track: scratch
platform: cpu
expect: REJECTED library-collective | REJECTED computes-names | CHEAT library-call
unscreened: CHEAT library-call
"""

import operator

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    operator.methodcaller("allreduce", [total])(dist.group.WORLD).wait()
    return total
