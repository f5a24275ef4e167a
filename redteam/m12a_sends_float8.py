"""row: m12
tries: sends its data in eight bits
problem: 2_allgather
expect: WRONG values
warns: narrows-values
"""

import torch
import torch.distributed as dist


def solution(tensor):
    codes = tensor.to(torch.float8_e4m3fn).view(torch.uint8)
    gathered = codes.new_empty(dist.get_world_size(), *codes.shape)
    dist.all_gather_into_tensor(gathered.flatten(0, 1), codes)
    return gathered.view(torch.float8_e4m3fn).to(tensor.dtype)
