"""row: 13
tries: has a thread of its own that goes on when the call has ended
expect: CHEAT threads
warns: starts-threads
"""

import threading
import time

import torch.distributed as dist

waiting = []


def work():
    while True:
        for tensor, done in waiting[:]:
            dist.all_reduce(tensor)
            waiting.remove((tensor, done))
            done.set()
        time.sleep(1e-4)


threading.Thread(target=work, daemon=True).start()


def solution(tensor):
    total, done = tensor.clone(), threading.Event()
    waiting.append((total, done))
    done.wait()
    return total
