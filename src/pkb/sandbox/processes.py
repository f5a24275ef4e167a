"""Processes: who belongs to whom, who dies with whom."""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pkb.sandbox import linux

_RANK_PROGRAM = """
import json, sys
from pkb.rank.bootstrap import run_rank
from pkb.rank.rank import Rank
run_rank(Rank, *json.loads(sys.argv[1]))
"""


def adopt_orphans() -> None:
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


def die_with_adopter(parent: int) -> None:
    """Wait until `parent` has gone and another process has taken its place, then die with that one."""
    while os.getppid() == parent:
        time.sleep(0.001)
    die_with_parent()


def leave_the_nursery() -> None:
    """What a fork of it must undo before it goes its own way."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)


def close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def children_of(*parents: int) -> list[int]:
    """Process ids, read from /proc; empty where the system has none."""
    found = []
    for pid in _processes():
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in parentheses, may hold anything; the fields after it are state and parent.
            state, ppid = file.read().rpartition(b")")[2].split()[:2]
            if int(ppid) in parents and state != b"Z":
                found.append(pid)
    return found


def ended_children() -> Iterator[tuple[int, int]]:
    """The ids and statuses of this process's children that have ended, each once. Never waits."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def session_of(pid: int) -> int | None:
    """Which a process shares with the rank that it comes from, unless it has opened one of its own."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def sessions_in_use() -> set[int | None]:
    """Of all processes that can be seen. The kernel gives no process a number that one of them has."""
    return {session_of(pid) for pid in _processes()}


def family_of(*ancestors: int) -> list[int]:
    """Their children, the children of those, and so on."""
    found: list[int] = []
    generation = children_of(*ancestors)
    while generation:
        found += generation
        generation = children_of(*generation)
    return found


def usage(pid: int) -> tuple[float, float]:
    """Seconds of processor that a process has had, ended threads included, and that its living ones stood in line.

    0 where the kernel does not tell.
    """
    used = waited = 0.0
    with contextlib.suppress(OSError):
        # The number of its clock, as clock_getcpuclockid(3) makes it.
        used = time.clock_gettime(~pid << 3 | 2)
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError):
            waited += int(file.read_bytes().split()[1]) / 1e9
    return used, waited


def keep_to(cores: set[int], pid: int) -> None:
    """Let the threads of a process run nowhere else; those that end meanwhile do not matter."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(thread), cores)


def threads_of(user: int) -> int:
    """Of all this user's processes that can be seen, together."""
    count = 0
    for pid in _processes():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == user:
                count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip()[:200]
    except OSError:
        return f"process {pid}"


def judges_socket() -> socket.socket:
    """Stdin, of which ranks inherit only the null device."""
    taken = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return taken


def execute_rank(order: dict[str, Any], rank: int, *fds: int | None) -> None:
    """run_rank in a program of its own, which takes this process's place."""
    for fd in fds:
        if fd is not None:
            os.set_inheritable(fd, True)
    what = json.dumps([order, rank, *fds])
    os.execv(sys.executable, [sys.executable, "-P", "-c", _RANK_PROGRAM, what])


def import_present(names: Sequence[str]) -> None:
    """Import what is installed, and can be, for all processes that are forked from now on."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    # Or every fork's collector goes through all that was imported, and with that copies its pages.
    gc.freeze()
