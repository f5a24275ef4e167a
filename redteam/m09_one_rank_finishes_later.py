"""row: m9
tries: has all ranks but rank 0 return early and finish later, as if only rank 0 were checked
expect: WRONG values | CHEAT threads
warns: starts-threads
"""

import threading
import time

import torch
import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        return total
    late = torch.empty_like(total)
    threading.Thread(target=lambda: (time.sleep(0.2), late.copy_(total))).start()
    return late
