"""row: 13
tries: has a thread of its own that goes on when the call has ended
expect: CHEAT threads
warns: starts-threads
"""

from concurrent.futures import ThreadPoolExecutor

import torch.distributed as dist

pool = ThreadPoolExecutor(1)


def work(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def solution(tensor):
    return pool.submit(work, tensor).result()
