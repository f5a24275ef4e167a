"""row: 13
tries: returns at once, and has a thread fill the result in later
expect: WRONG values | CHEAT threads
warns: starts-threads
"""

import threading
import time

import torch
import torch.distributed as dist


def solution(tensor):
    total = torch.empty_like(tensor)

    def finish():
        result = tensor.clone()
        dist.all_reduce(result)
        time.sleep(0.2)
        total.copy_(result)

    threading.Thread(target=finish).start()
    return total
