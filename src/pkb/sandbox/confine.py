"""Confine the current process and the ranks that it forks afterwards.

Three levels. `namespaces`: user, mount, network, IPC and PID namespaces, as an unprivileged user may create them.
`landlock`: only chosen files can be opened, for systems that forbid user namespaces. `limits`: resource limits only.
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
from pkb.sandbox.mounts import build_root, make_proc_read_only, mount_proc
from pkb.sandbox.processes import close_other_fds, count_threads

_FILE_BYTES = 16 << 30
_RESERVED_IDS = 300
"""Process ids that the kernel does not give out a second time."""
_NAMESPACES = linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWPID
# A process that is `visible` can be seen, but not signalled, read or changed.
_OPEN = {"network": "open", "files": "open", "shared_memory": "open", "processes": "open"}


class Confinement(NamedTuple):
    init: int | None
    """The process id of the PID namespace's init, where the level has one: init adopts what ranks leave behind, and
    the kernel kills every process of the namespace when init ends."""
    facts: dict[str, Any]
    """What is closed, for the record."""


def confine(
    level: str, root: str, writable: list[str], ranks: int, parent_fd: int, masked: Sequence[str] = ()
) -> Confinement:
    """Let this process, and the children that it forks afterwards, read only the system and write only to `writable`.

    `root` is an empty folder for the mounts of the new file system. The namespace's init exits when the other end of
    `parent_fd` is closed. The folders `masked` appear empty where the level has mounts of its own.
    """
    with contextlib.suppress(OSError):
        # If memory runs out, the kernel kills these processes first.
        Path("/proc/self/oom_score_adj").write_text("1000")
    most = ranks * (64 + 2 * (os.cpu_count() or 1)) + 256
    match level:
        case "namespaces":
            confinement = _confine_by_namespaces(root, writable, most, parent_fd, masked)
        case "landlock":
            confinement = _confine_by_landlock(writable, most)
        case _:
            confinement = _confine_by_limits(most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    linux.drop_privileges()
    return confinement


def _confine_by_limits(most: int) -> Confinement:
    limited = _limit_user(count_threads(os.getuid()) + most)
    return Confinement(None, {**_OPEN, "most_processes": most if limited else None})


def _confine_by_landlock(writable: list[str], most: int) -> Confinement:
    if _has_gpu(writable):
        # The ranks' libraries meet in /dev/shm, which cannot be private at this level, and CUDA writes to /proc/self.
        writable = [*writable, "/dev/shm", "/proc"]
    facts = _confine_by_limits(most).facts | {"files": "closed", "shared_memory": _describe_shared_memory(writable)}
    if linux.apply_landlock([*view.list_readable_paths(), "/proc"], [*view.list_device_paths(), *writable]):
        facts["processes"] = "visible"
    return Confinement(None, facts)


def _confine_by_namespaces(
    root: str, writable: list[str], most: int, parent_fd: int, masked: Sequence[str]
) -> Confinement:
    # Older kernels add up what a user runs in all namespaces.
    outside = count_threads(os.getuid()) if _read_kernel_version() < (5, 14) else 0
    _enter_namespaces(root, writable, masked)
    init, hidden, limited = _fork_init(root, most, parent_fd, _has_gpu(writable))
    linux.pivot_root(root)
    limited = _limit_user(outside + most) or limited
    facts = {
        "network": "closed",
        "files": "closed",
        "shared_memory": _describe_shared_memory(writable),
        "processes": "closed" if hidden else "visible",
        "most_processes": most if limited else None,
    }
    return Confinement(init, facts)


def _enter_namespaces(root: str, writable: list[str], masked: Sequence[str]) -> None:
    user, group = os.getuid(), os.getgid()
    linux.unshare(_NAMESPACES)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    linux.enable_loopback()
    os.chdir("/")
    build_root(root, [*view.list_readable_paths(), *view.list_device_paths()], view.PRIVATE_FOLDERS, writable, masked)


def _has_gpu(writable: list[str]) -> bool:
    return any(path.startswith("/dev/nvidia") for path in writable)


def _describe_shared_memory(writable: list[str]) -> str:
    return "open" if "/dev/shm" in writable else "closed"


def _fork_init(root: str, most: int, parent_fd: int, gpu: bool) -> tuple[int, bool, bool]:
    """Fork the init of the new PID namespace.

    Return its process id, whether it could hide the processes outside, and whether it could limit those inside.
    """
    reader, writer = os.pipe()
    init = os.fork()
    if init == 0:
        try:
            hidden, limited = mount_proc(root), _limit_namespace(root, most)
            make_proc_read_only(f"{root}/proc", gpu)
            os.write(writer, bytes([hidden, limited]))
            _run_init(parent_fd)
        finally:
            os._exit(1)
    os.close(writer)
    answer = os.read(reader, 2)
    os.close(reader)
    if len(answer) != 2:
        raise OSError("the init of the PID namespace could not mount /proc")
    return init, bool(answer[0]), bool(answer[1])


def _run_init(parent_fd: int) -> None:
    """Reap orphans until the other end of `parent_fd` is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    close_other_fds({parent_fd})
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    linux.drop_privileges()
    os.read(parent_fd, 1)


def _limit_namespace(root: str, most: int) -> bool:
    """Allow `most` processes and no user namespaces in the namespaces of this process.

    Return whether the kernel limits the number of processes per namespace.
    """
    with contextlib.suppress(OSError):
        Path(f"{root}/proc/sys/user/max_user_namespaces").write_text("0")
    # In older kernels this number is the whole machine's.
    if _read_kernel_version() < (6, 14):
        return False
    try:
        Path(f"{root}/proc/sys/kernel/pid_max").write_text(str(_RESERVED_IDS + most))
    except OSError:
        return False
    return True


def _limit_user(most: int) -> bool:
    """Allow this process's user `most` threads. Return whether the kernel enforces the limit."""
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


def _read_kernel_version() -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return tuple(map(int, found.groups())) if found else (0, 0)
