"""row: 25
tries: answers with its own input, as if all ranks held the same
expect: WRONG values
"""

import torch.distributed as dist


def solution(tensor):
    return tensor * dist.get_world_size()
