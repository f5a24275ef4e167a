"""Start the nursery before it is needed: it imports torch while the judge's own process still does."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from pkb.sandbox.scrub import ONE_THREAD, scrub_environment

_SOURCES = Path(__file__).parents[3]
_started: list[tuple[subprocess.Popen[bytes], socket.socket]] = []
_taking = threading.Lock()


def start_nursery(wrapper: Sequence[str] = ()) -> None:
    """Start a nursery process now, unless one waits already; the next `take_nursery` returns it.

    A nursery that is never taken ends with this process.
    """
    if _started and not wrapper:
        return
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [*wrapper, sys.executable, "-P", "-m", "pkb.nursery.main"],
        env={**scrub_environment(), **ONE_THREAD, "PYTHONPATH": str(_SOURCES)},
        # The one descriptor that a wrapper is sure to hand on.
        stdin=theirs.fileno(),
        stdout=subprocess.DEVNULL,
        # Its own session: Ctrl+C reaches the judge alone, which then ends the ranks in order.
        start_new_session=True,
    )
    theirs.close()
    _started.append((process, ours))


def take_nursery(wrapper: Sequence[str] = ()) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Return a nursery process that waits for its settings, and our end of its channel.

    Under a wrapper it is always a new process.
    """
    with _taking:
        if wrapper or not _started:
            start_nursery(wrapper)
        return _started.pop()


def _forget_parent() -> None:
    """Let go, in a forked child, of nurseries that are the parent's, and of a lock that another thread held."""
    global _taking
    _taking = threading.Lock()
    while _started:
        _started.pop()[1].close()


os.register_at_fork(after_in_child=_forget_parent)
