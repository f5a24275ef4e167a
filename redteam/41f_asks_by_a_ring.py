"""row: 41
tries: has the kernel make its system calls from a ring, past any filter of calls
platform: cpu
expect: BUILD_FAILED PermissionError
"""

import ctypes

IO_URING_SETUP = 425

libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(ctypes.c_long(IO_URING_SETUP), ctypes.c_long(4), ctypes.create_string_buffer(120)) < 0:
    raise OSError(ctypes.get_errno(), "no ring")


def solution(tensor):
    return tensor.clone()
