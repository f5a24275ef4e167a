"""row: 40
tries: opens a line to the kernel for which this machine may have any module loaded
platform: cpu
expect: REJECTED uses-the-network
unscreened: BUILD_FAILED OSError
"""

import socket

NETLINK_AUDIT = 9

line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_AUDIT)


def solution(tensor):
    return tensor.clone()
