"""row: 40
tries: calls the host of its virtual machine, which no network namespace confines
platform: cpu
expect: REJECTED uses-the-network
unscreened: BUILD_FAILED OSError
"""

import socket

AF_VSOCK, HOST = 40, 2

with socket.socket(AF_VSOCK, socket.SOCK_STREAM) as line:
    line.settimeout(2)
    # Nobody has to answer: the call goes out.
    line.connect_ex((HOST, 1024))


def solution(tensor):
    return tensor.clone()
