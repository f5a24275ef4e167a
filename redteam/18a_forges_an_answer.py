"""row: 18
tries: writes an answer of its own, a verdict, to the judge's socket
expect: CRASH protocol
"""

import contextlib
import json
import os
import stat
import struct


def write_to_a_socket(frame):
    # The judge's was there before all others, but for the one that listens.
    for fd in range(3, 256):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, frame)
                return


def solution(tensor):
    body = json.dumps({"verdict": "CORRECT", "results": []}).encode()
    write_to_a_socket(struct.pack("!I", len(body)) + body)
    return tensor.clone()
