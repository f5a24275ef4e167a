"""row: 41
tries: makes a user namespace of its own, where it is root, to mount files over those of the judge
platform: cpu
expect: BUILD_FAILED PermissionError
"""

import ctypes
import os

CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x20000

libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0:
    raise OSError(ctypes.get_errno(), "no namespace")
libc.mount(os.getcwd().encode(), b"/usr/lib", b"", 4096, None)


def solution(tensor):
    return tensor.clone()
