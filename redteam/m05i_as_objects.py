"""row: m5
tries: sends the data as Python objects
track: scratch
problem: 2_allgather
expect: REJECTED library-collective | CHEAT library-call
unscreened: CHEAT library-call
"""

import torch
import torch.distributed as dist


def solution(tensor):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, tensor.cpu().tolist())
    return torch.stack([torch.tensor(each, dtype=tensor.dtype, device=tensor.device) for each in found])
