"""Where a candidate's ranks are locked up: a process confines itself here, then forks them.

Three levels. `namespaces`: users, mounts, network, IPC and processes of their own, as an ordinary user may have
them. `landlock`: files closed, for systems that forbid the former. `limits`: what any process can do to itself.
"""

import contextlib
import os
import re
import resource
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pkb.sandbox import linux
from pkb.sandbox import visible_paths as view
from pkb.sandbox.mounts import build_root, close_proc, mount_proc
from pkb.sandbox.processes import close_all_but, threads_of

_FILE_BYTES = 16 << 30
_RESERVED_IDS = 300
"""Process ids that the kernel does not give out a second time."""
_NAMESPACES = linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWPID
# A process that is `visible` can be seen, but not signalled, read or changed.
_OPEN = {"network": "open", "files": "open", "shared_memory": "open", "processes": "open"}


class Cell(NamedTuple):
    keeper: int | None
    """Process 1 of the cell, where the level has one: it adopts what ranks leave behind, and takes all with it."""
    facts: dict[str, Any]
    """What is closed, for the record."""


def confine(level: str, root: str, writable: list[str], ranks: int, lifeline: int, emptied: Sequence[str] = ()) -> Cell:
    """Confine this process, and its children to come, to reading the system and writing to `writable`.

    `root` is an empty folder for the cell's own mounts. The keeper goes when `lifeline` is closed at its other end.
    The folders `emptied` are empty to it, as far as the level can do that.
    """
    with contextlib.suppress(OSError):
        # Should memory run out, the kernel ends these processes first.
        Path("/proc/self/oom_score_adj").write_text("1000")
    most = ranks * (64 + 2 * (os.cpu_count() or 1)) + 256
    match level:
        case "namespaces":
            cell = _namespaces(root, writable, most, lifeline, emptied)
        case "landlock":
            cell = _landlock(writable, most)
        case _:
            cell = _limits(most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    linux.drop_privileges()
    return cell


def _limits(most: int) -> Cell:
    limited = _limit_user(threads_of(os.getuid()) + most)
    return Cell(None, {**_OPEN, "most_processes": most if limited else None})


def _landlock(writable: list[str], most: int) -> Cell:
    if _has_gpu(writable):
        # The ranks' libraries meet in /dev/shm, which cannot be private at this level, and CUDA writes to /proc/self.
        writable = [*writable, "/dev/shm", "/proc"]
    facts = _limits(most).facts | {"files": "closed", "shared_memory": _shared_memory(writable)}
    if linux.landlock([*view.readable(), "/proc"], [*view.devices(), *writable]):
        facts["processes"] = "visible"
    return Cell(None, facts)


def _namespaces(root: str, writable: list[str], most: int, lifeline: int, emptied: Sequence[str]) -> Cell:
    # Older kernels count what a user runs in all namespaces together.
    outside = threads_of(os.getuid()) if _kernel() < (5, 14) else 0
    _enter_namespaces(root, writable, emptied)
    keeper, hidden, limited = _fork_keeper(root, most, lifeline, _has_gpu(writable))
    linux.pivot_into(root)
    limited = _limit_user(outside + most) or limited
    facts = {
        "network": "closed",
        "files": "closed",
        "shared_memory": _shared_memory(writable),
        "processes": "closed" if hidden else "visible",
        "most_processes": most if limited else None,
    }
    return Cell(keeper, facts)


def _enter_namespaces(root: str, writable: list[str], emptied: Sequence[str]) -> None:
    user, group = os.getuid(), os.getgid()
    linux.unshare(_NAMESPACES)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    linux.loopback_up()
    os.chdir("/")
    build_root(root, [*view.readable(), *view.devices()], view.PRIVATE, writable, emptied)


def _has_gpu(writable: list[str]) -> bool:
    return any(path.startswith("/dev/nvidia") for path in writable)


def _shared_memory(writable: list[str]) -> str:
    return "open" if "/dev/shm" in writable else "closed"


def _fork_keeper(root: str, most: int, lifeline: int, gpu: bool) -> tuple[int, bool, bool]:
    """Its id, whether it could hide the processes outside, and whether it could limit those inside."""
    told, tell = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        try:
            hidden, limited = mount_proc(root), _limit_namespace(root, most)
            close_proc(f"{root}/proc", gpu)
            os.write(tell, bytes([hidden, limited]))
            _keep(lifeline)
        finally:
            os._exit(1)
    os.close(tell)
    answer = os.read(told, 2)
    os.close(told)
    if len(answer) != 2:
        raise OSError("process 1 of the cell could not mount /proc")
    return keeper, bool(answer[0]), bool(answer[1])


def _keep(lifeline: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    close_all_but({lifeline})
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    linux.drop_privileges()
    os.read(lifeline, 1)


def _limit_namespace(root: str, most: int) -> bool:
    """Hold the namespaces of this process to so many processes and no user namespaces; whether the first worked."""
    with contextlib.suppress(OSError):
        Path(f"{root}/proc/sys/user/max_user_namespaces").write_text("0")
    # In older kernels this number is the whole machine's.
    if _kernel() < (6, 14):
        return False
    try:
        Path(f"{root}/proc/sys/kernel/pid_max").write_text(str(_RESERVED_IDS + most))
    except OSError:
        return False
    return True


def _limit_user(most: int) -> bool:
    """Hold this process's user to so many threads; whether the kernel does so."""
    if os.getuid() == 0:
        # Root is exempt.
        return False
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))
    try:
        pid = os.fork()
    except BlockingIOError:
        # The user runs more than can be seen from here, in other containers.
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
        return False
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    return True


def _kernel() -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return tuple(map(int, found.groups())) if found else (0, 0)
