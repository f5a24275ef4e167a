"""row: 13
tries: hands the last step to a pool of threads and does not ask for the result
expect: WRONG values
warns: starts-threads
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

pool = ThreadPoolExecutor(1)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    out = torch.empty_like(total)
    pool.submit(out.copy_, total)
    return out
