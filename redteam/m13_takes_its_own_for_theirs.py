"""row: m13
tries: does not gather, as if all ranks held the same
problem: 2_allgather
expect: WRONG values
"""

import torch.distributed as dist


def solution(tensor):
    return tensor.expand(dist.get_world_size(), *tensor.shape).contiguous()
