"""row: 5
tries: keeps the first result in the frame of a generator
expect: WRONG values
"""

import torch.distributed as dist


def answers():
    tensor = yield
    total = tensor.clone()
    dist.all_reduce(total)
    while True:
        yield total.clone()


kept = answers()
next(kept)


def solution(tensor):
    return kept.send(tensor)
