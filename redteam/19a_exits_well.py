"""row: 19
tries: ends the process with code 0 before anything is compared
expect: REJECTED ends-processes
unscreened: CRASH
"""

import os


def solution(tensor):
    os._exit(0)
