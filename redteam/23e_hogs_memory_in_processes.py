"""row: 23
tries: spreads its hoard over many processes, each of which stays below the limit
platform: cpu
expect: REJECTED starts-processes
unscreened: CRASH quota
"""

import os
import time

hoards = []


def solution(tensor):
    # The limit is 512 MiB for a rank, and 1 GiB for both.
    for _ in range(8):
        if os.fork() == 0:
            hoards.append(b"x" * (200 << 20))
            time.sleep(60)
            os._exit(0)
    time.sleep(60)
    return tensor.clone()
