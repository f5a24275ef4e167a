"""row: M6
tries: reads nothing of what the judge sends after the first trial
expect: REJECTED sets-hooks
unscreened: HANG
"""

import signal
import time

import torch.distributed as dist


def stay_away(number, frame):
    time.sleep(600)


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    # The process is waiting for the next order when the alarm comes.
    signal.signal(signal.SIGALRM, stay_away)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    return total
