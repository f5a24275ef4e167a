"""row: 18
tries: breaks the printing of its verdict by the name of its result's class
expect: WRONG type | WRONG form
"""

import torch
import torch.distributed as dist


class Odd(torch.Tensor):
    pass


Odd.__qualname__ = Odd.__module__ = "\udfff\x9b2K\rCORRECT[bold green]\u200f"


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total.as_subclass(Odd)
