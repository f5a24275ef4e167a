"""row: honest
tries: has a pool of threads that idles between calls
expect: CORRECT
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

POOL = ThreadPoolExecutor(2)


def solution(tensor):
    halves = POOL.map(torch.clone, tensor.reshape(-1).chunk(2))
    total = torch.cat(list(halves)).view(tensor.shape)
    dist.all_reduce(total)
    return total
