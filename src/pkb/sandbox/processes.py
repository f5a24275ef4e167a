"""Process trees: list, tie, reap and measure processes."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from pkb.sandbox import linux


def adopt_orphans() -> None:
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


def die_with_subreaper(parent: int) -> None:
    """Wait until `parent` has ended and the subreaper has adopted this process, then die with the subreaper."""
    while os.getppid() == parent:
        time.sleep(0.001)
    die_with_parent()


def close_other_fds(kept: set[int]) -> None:
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def list_children(*parents: int) -> list[int]:
    """Return the ids of the live children of these processes, from /proc; empty where the system has no /proc."""
    found = []
    for pid in _list_processes():
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in parentheses, may hold anything; the fields after it are state and parent.
            state, ppid = file.read().rpartition(b")")[2].split()[:2]
            if int(ppid) in parents and state != b"Z":
                found.append(pid)
    return found


def reap_children() -> Iterator[tuple[int, int]]:
    """Reap the children of this process that have ended, without waiting; yield their ids and statuses."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def find_session(pid: int) -> int | None:
    """Return the session of a process, None when the process is gone.

    A process shares the session of the rank that started it, unless the process has called setsid.
    """
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def list_sessions() -> set[int | None]:
    """Return the sessions of all visible processes. The kernel reuses no session's number while the session exists."""
    return {find_session(pid) for pid in _list_processes()}


def list_descendants(*ancestors: int) -> list[int]:
    """Return the ids of all live descendants of these processes."""
    found: list[int] = []
    generation = list_children(*ancestors)
    while generation:
        found += generation
        generation = list_children(*generation)
    return found


def read_cpu_usage(pid: int) -> tuple[float, float]:
    """Return a process's CPU seconds, ended threads included, and the run-queue wait of its live threads in seconds.

    Both are 0 where the kernel does not report them.
    """
    used = waited = 0.0
    with contextlib.suppress(OSError):
        # The id of the process's CPU clock, as clock_getcpuclockid(3) computes it.
        used = time.clock_gettime(~pid << 3 | 2)
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError):
            waited += int(file.read_bytes().split()[1]) / 1e9
    return used, waited


def read_resident_memory(pid: int) -> int:
    """Return the bytes of private and shared memory that a process has touched; 0 when the process is gone.

    Pages that several processes share count in each of them.
    """
    return _sum_fields(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:"))


def read_memory_share(pid: int) -> int:
    """Return the bytes of memory that a process uses, where a page that n processes share counts 1/n.

    This takes the kernel a millisecond per gigabyte or so.
    """
    return _sum_fields(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))


def _sum_fields(path: str, names: tuple[bytes, ...]) -> int:
    try:
        with open(path, "rb") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith(names))
    except OSError:
        return 0


def pin_process(cores: set[int], pid: int) -> None:
    """Pin all threads of a process to these cores; threads that end meanwhile are skipped."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(thread), cores)


def count_threads(user: int) -> int:
    """Return the number of threads in all visible processes of this user."""
    count = 0
    for pid in _list_processes():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == user:
                count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def _list_processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []


def read_command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip()[:200]
    except OSError:
        return f"process {pid}"
