"""row: 23
tries: has a thread burn time while the reference is timed
timed: yes
expect: CHEAT threads
warns: starts-threads
"""

import threading
import time

import torch.distributed as dist

busy = False


def burn():
    while True:
        # Only while nobody waits for this rank.
        end = time.monotonic() + (0 if busy else 1e-3)
        while time.monotonic() < end:
            pass
        time.sleep(1e-4)


threading.Thread(target=burn, daemon=True).start()


def solution(tensor):
    global busy
    busy = True
    total = tensor.clone()
    dist.all_reduce(total)
    busy = False
    return total
