"""row: 19
tries: leaves by SystemExit with code 0, one call before the last
expect: CRASH
"""

import sys

import torch.distributed as dist

calls = 0


def solution(tensor):
    global calls
    calls += 1
    if calls == 2:
        sys.exit(0)
    total = tensor.clone()
    dist.all_reduce(total)
    return total
