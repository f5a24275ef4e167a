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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pkb.sandbox import linux
from pkb.sandbox import visible_paths as view
from pkb.sandbox.mounts import build_root, make_proc_read_only, mount_proc
from pkb.sandbox.processes import close_other_fds, count_threads
from pkb.sandbox.quota import Quota, format_bytes
from pkb.sandbox.seccomp import install_filter
from pkb.sandbox.visible_paths import Ours

_MOST_FILE_BYTES = 16 << 30
_RESERVED_IDS = 300
"""Process ids that the kernel does not give out a second time."""
_NAMESPACES = linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWPID
# A process that is `visible` can be seen, but not signalled, read or changed.
_OPEN = {"network": "open", "files": "open", "shared_memory": "open", "processes": "open"}
_BY_NAMESPACE, _BY_MOUNTS, _BY_LANDLOCK = "closed by a namespace", "closed by mounts", "closed by Landlock"


@dataclass(frozen=True)
class Domain:
    """What the processes of a world may reach, and how much of it they may use."""

    quota: Quota
    most_processes: int
    """Processes and threads, all together."""
    readable: Sequence[str] = ()
    """Paths besides those of the system and of Python."""
    writable: Sequence[str] = ()
    """Files, folders and devices of this machine."""
    private: Sequence[str] = ()
    """Folders that are new and empty inside, where the level has mounts of its own; otherwise they are writable."""
    hidden: Sequence[str] = ()
    """Paths that are not shown, even where they lie in one that is."""
    ours: Ours = Ours.LIBRARIES
    """How much of pkb's own files is shown."""
    allows_shared_memory: bool = False
    """Whether memory may be shared without a file, since a cgroup counts that, or nothing limits memory."""

    @property
    def has_gpu(self) -> bool:
        return any(path.startswith("/dev/nvidia") for path in self.writable)

    @property
    def may_share_memory(self) -> bool:
        """Whether memory may be shared without a file: NVIDIA's driver needs that."""
        return self.allows_shared_memory or self.has_gpu

    def list_rules(self) -> list[view.PathRule]:
        # A shared mapping of /dev/zero is shared memory without a file.
        devices = [path for path in view.list_device_paths() if path != "/dev/zero" or self.may_share_memory]
        return view.list_rules(self.ours, [*devices, *self.readable], self.hidden)


class Confinement(NamedTuple):
    init: int | None
    """The process id of the PID namespace's init, where the level has one: init adopts what ranks leave behind, and
    the kernel kills every process of the namespace when init ends."""
    facts: dict[str, Any]
    """What is closed or limited and by which means, for the record."""


def count_allowed_processes(ranks: int) -> int:
    """Return the most processes and threads that a world may have."""
    return ranks * (64 + 2 * (os.cpu_count() or 1)) + 256


def confine(level: str, root: str, domain: Domain, parent_fd: int) -> Confinement:
    """Confine this process, and the children that it forks afterwards, to a domain.

    `root` is an empty folder for the mounts of the new file system. The namespace's init exits when the other end of
    `parent_fd` is closed.
    """
    with contextlib.suppress(OSError):
        # If memory runs out, the kernel kills these processes first.
        Path("/proc/self/oom_score_adj").write_text("1000")
    match level:
        case "namespaces":
            confinement = _confine_by_namespaces(root, domain, parent_fd)
        case "landlock":
            confinement = _confine_by_landlock(domain)
        case _:
            confinement = _confine_by_limits(domain)
    file_bytes = min(_MOST_FILE_BYTES, domain.quota.file_bytes)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    linux.drop_privileges()
    confinement.facts["keyring"] = _close_keyring(domain.may_share_memory)
    return confinement


def _close_keyring(may_share_memory: bool) -> str:
    """Leave the keyring that this process inherited, and install the filter of system calls; return what that closed.

    The filter is the last step: it refuses most of what confines.
    """
    keyring = "open"
    with contextlib.suppress(OSError):
        linux.join_new_keyring()
        keyring = "empty at the start"
    with contextlib.suppress(OSError):
        install_filter(may_share_memory)
        keyring = "closed by seccomp"
    return keyring


def _confine_by_limits(domain: Domain) -> Confinement:
    is_limited = _limit_user(count_threads(os.getuid()) + domain.most_processes)
    return Confinement(None, {**_OPEN, "most_processes": domain.most_processes if is_limited else None})


def _confine_by_landlock(domain: Domain) -> Confinement:
    writable = [*domain.writable, *domain.private]
    if domain.has_gpu:
        # The ranks' libraries meet in /dev/shm, which cannot be private at this level, and CUDA writes to /proc/self.
        writable += ["/dev/shm", "/proc"]
    shared_memory = _describe_shared_memory(writable, _BY_LANDLOCK)
    facts = _confine_by_limits(domain).facts | {"files": _BY_LANDLOCK, "shared_memory": shared_memory}
    readable, listable = view.list_open_paths(domain.list_rules())
    if linux.apply_landlock([*readable, "/proc"], [*_list_null_devices(), *writable], listable):
        facts["processes"] = "visible"
    return Confinement(None, facts)


def _list_null_devices() -> list[str]:
    return [path for path in view.list_device_paths() if path != "/dev/zero"]


def _confine_by_namespaces(root: str, domain: Domain, parent_fd: int) -> Confinement:
    # Older kernels add up what a user runs in all namespaces.
    outside = count_threads(os.getuid()) if _read_kernel_version() < (5, 14) else 0
    _enter_namespaces(root, domain)
    init, is_hidden, is_limited = _fork_init(root, domain.most_processes, parent_fd, domain.has_gpu)
    linux.pivot_root(root)
    is_limited = _limit_user(outside + domain.most_processes) or is_limited
    quota = domain.quota
    facts = {
        "network": _BY_NAMESPACE,
        "files": _BY_MOUNTS,
        "shared_memory": _describe_shared_memory(domain.writable, _BY_MOUNTS),
        "processes": _BY_NAMESPACE if is_hidden else "visible",
        "most_processes": domain.most_processes if is_limited else None,
        "writing": f"limited to {format_bytes(quota.file_bytes)} and {quota.most_files} files by tmpfs",
    }
    return Confinement(init, facts)


def _enter_namespaces(root: str, domain: Domain) -> None:
    user, group = os.getuid(), os.getgid()
    linux.unshare(_NAMESPACES)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    linux.enable_loopback()
    os.chdir("/")
    private = [*view.PRIVATE_FOLDERS, *domain.private]
    build_root(root, domain.list_rules(), private, sorted(domain.writable), domain.quota)


def _describe_shared_memory(writable: Sequence[str], closed: str) -> str:
    return "open" if "/dev/shm" in writable else closed


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
