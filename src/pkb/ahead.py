"""A head start: the process that ranks are forked from imports torch while this one still does."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

# Everything else (keys, tokens, settings of the person's shell) stays outside.
_INHERITED = re.compile(r"PATH|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|CC|CXX|CUDA_\w+|NVIDIA_\w+|NCCL_\w+")
# Read when the libraries are loaded; threads of theirs would not survive the fork.
_ONE_THREAD = {f"{pool}_NUM_THREADS": "1" for pool in ("OMP", "MKL", "OPENBLAS")}
_started: list[tuple[subprocess.Popen[bytes], socket.socket]] = []


def start() -> None:
    """Begin now; the next nursery takes it over. Without one, it ends with this process."""
    ours, theirs = socket.socketpair()
    kept = {key: value for key, value in os.environ.items() if _INHERITED.fullmatch(key)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pkb.judge.nursery_main", str(theirs.fileno())],
        env={**kept, **_ONE_THREAD, "PYTHONPATH": str(Path(__file__).parents[1])},
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # Its own session: Ctrl+C reaches the judge alone, which then ends the ranks in order.
        start_new_session=True,
    )
    theirs.close()
    _started.append((process, ours))


def take() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process and our end of its channel: it waits for its settings there."""
    if not _started:
        start()
    return _started.pop()
