"""row: m5
tries: calls the library's collective from another thread
track: scratch
platform: cpu
expect: REJECTED library-collective | CHEAT library-call
unscreened: CHEAT library-call
"""

import threading

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()
    thread = threading.Thread(target=lambda: dist.group.WORLD.allreduce([total]).wait())
    thread.start()
    thread.join()
    return total
