"""Prepare the nursery for forks, and forks of the nursery for their work."""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from pkb.sandbox import linux

_RANK_PROGRAM = """
import json, sys
from pkb.rank.bootstrap import run_rank
from pkb.rank.rank import Rank
run_rank(Rank, *json.loads(sys.argv[1]))
"""


def reset_after_fork() -> None:
    """Undo the nursery's signal handling and memory protection, which a fork of the nursery inherits."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)


def take_judge_socket() -> socket.socket:
    """Return the socket to the judge, which is this process's stdin, and put the null device in its place.

    Ranks inherit stdin, and must not inherit the socket.
    """
    judge = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return judge


def execute_rank(order: dict[str, Any], rank: int, port: int, *fds: int | None) -> None:
    """Replace this process by a new Python program that calls run_rank."""
    for fd in fds:
        if fd is not None:
            os.set_inheritable(fd, True)
    arguments = json.dumps([order, rank, port, *fds])
    os.execv(sys.executable, [sys.executable, "-P", "-c", _RANK_PROGRAM, arguments])


def preload_modules(names: Sequence[str]) -> None:
    """Import these modules for all processes that are forked afterwards; skip those that cannot be imported."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    # Otherwise each fork's garbage collector would visit all imported objects, and copy their pages.
    gc.freeze()
