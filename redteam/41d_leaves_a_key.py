"""row: 41
tries: leaves its results in the kernel's keyring, for the next candidate to take
platform: cpu
expect: BUILD_FAILED PermissionError
"""

import ctypes
import platform

ADD_KEY, SESSION_KEYRING = {"x86_64": 248, "aarch64": 217}[platform.machine()], -3

libc = ctypes.CDLL(None, use_errno=True)
if (
    libc.syscall(ctypes.c_long(ADD_KEY), b"user", b"results", b"42", ctypes.c_long(2), ctypes.c_long(SESSION_KEYRING))
    < 0
):
    raise OSError(ctypes.get_errno(), "no key for the next one")


def solution(tensor):
    return tensor.clone()
