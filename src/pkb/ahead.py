"""A head start: the process that ranks are forked from imports torch while this one still does."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

# Everything else (keys, tokens, settings of the person's shell) stays outside.
_INHERITED = re.compile(
    r"PATH|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|CC|CXX|MAX_JOBS|CUDA_(?!MPS_)\w+|NVIDIA_\w+|NCCL_\w+|THUNDERKITTENS_ROOT"
)
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL")
# Read when the libraries are loaded; threads of theirs would not survive the fork.
ONE_THREAD = {f"{pool}_NUM_THREADS": "1" for pool in ("OMP", "MKL", "OPENBLAS")}
_started: list[tuple[subprocess.Popen[bytes], socket.socket]] = []
_taking = threading.Lock()


def start(wrapper: Sequence[str] = ()) -> None:
    """Begin now; the next nursery takes it over. Without one, it ends with this process."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [*wrapper, sys.executable, "-P", "-m", "pkb.judge.nursery_main"],
        env={**passed_on(), **ONE_THREAD, "PYTHONPATH": str(Path(__file__).parents[1])},
        # The one descriptor that a wrapper is sure to hand on.
        stdin=theirs.fileno(),
        stdout=subprocess.DEVNULL,
        # Its own session: Ctrl+C reaches the judge alone, which then ends the ranks in order.
        start_new_session=True,
    )
    theirs.close()
    _started.append((process, ours))


def take(wrapper: Sequence[str] = ()) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process and our end of its channel, where it waits for its settings; under a wrapper, always a new one."""
    with _taking:
        if wrapper or not _started:
            start(wrapper)
        return _started.pop()


def passed_on() -> dict[str, str]:
    """The variables of this process's environment that programs of others may have."""
    return {key: value for key, value in os.environ.items() if _is_passed_on(key)}


def _is_passed_on(variable: str) -> bool:
    return bool(_INHERITED.fullmatch(variable)) and not SECRET.search(variable)
