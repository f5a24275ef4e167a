"""System calls that the nursery and the sandbox need and Python does not offer. They raise OSError."""

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterable

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 1 << 27, 1 << 28, 1 << 29, 1 << 30
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
_MNT_DETACH = 2
_CAPABILITY_VERSION_3 = 0x20080522
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_INTERFACE = struct.Struct("16sH22x")
_SECCOMP, _KEYCTL = {"x86_64": (317, 250), "aarch64": (277, 219)}.get(os.uname().machine, (-1, -1))
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_JOIN_SESSION_KEYRING = 1
# Landlock's numbers are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ_FILE, _READ_DIR, _EXECUTE, _WRITE_FILE, _TRUNCATE, _IOCTL = 1 << 2, 1 << 3, 1, 1 << 1, 1 << 14, 1 << 15
_READ_RIGHTS = _READ_FILE | _READ_DIR | _EXECUTE
_FILE_RIGHTS = _READ_FILE | _EXECUTE | _WRITE_FILE | _TRUNCATE | _IOCTL
_RIGHTS_SINCE = {1: 13, 2: 14, 3: 15, 5: 16}
"""Number of access rights that Landlock knows, by the ABI version that introduced them."""
_SCOPES_SINCE, _SCOPES = 6, 0b11
"""The ABI version that can, and the flags that do, close abstract sockets of and signals to processes outside."""

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _call("prctl", option, value, 0, 0, 0)


def unshare(flags: int) -> None:
    _call("unshare", flags)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    _call("mount", os.fsencode(source), os.fsencode(target), kind.encode(), flags, options.encode(), about=target)


def pivot_root(root: str) -> None:
    """Make the mount point `root` the root of this mount namespace, and detach everything else."""
    os.chdir(root)
    _call("pivot_root", b".", b".")
    unmount(".")
    os.chdir("/")


def drop_privileges() -> None:
    """Drop every capability; no program that this process executes can regain one."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if sys.platform == "linux":
        _call("capset", struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def unmount(target: str) -> None:
    """Remove a mount from the tree; what is bound elsewhere of it stays."""
    _call("umount2", os.fsencode(target), _MNT_DETACH, about=target)


def apply_seccomp(program: bytes) -> None:
    """Have the kernel ask this BPF program about every further call of this process and of its future children."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    text = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
    if _call("syscall", _SECCOMP, _SET_MODE_FILTER, _ALL_THREADS, described):
        raise OSError("seccomp: another thread of this process could not be given the filter")


def join_new_keyring() -> None:
    """Replace the session keyring that this process inherited by an empty one of its own."""
    _call("syscall", _KEYCTL, _JOIN_SESSION_KEYRING, None)


def enable_loopback() -> None:
    with socket.socket() as sock:
        query = _INTERFACE.pack(b"lo", 0)
        _, flags = _INTERFACE.unpack(fcntl.ioctl(sock, _SIOCGIFFLAGS, query))
        fcntl.ioctl(sock, _SIOCSIFFLAGS, _INTERFACE.pack(b"lo", flags | _IFF_UP))


def apply_landlock(readable: Iterable[str], writable: Iterable[str], listable: Iterable[str] = ()) -> bool:
    """Deny this process and its future children every file except these paths and what lies below them.

    Of `listable` folders, the names inside may be listed, at any depth. Return whether signals to processes outside are
    blocked too, which not every version of Landlock can.
    """
    version = _call("syscall", _CREATE_RULESET, None, 0, 1)
    handled = (1 << max(count for since, count in _RIGHTS_SINCE.items() if since <= version)) - 1
    scopes = _SCOPES if version >= _SCOPES_SINCE else 0
    ruleset = _call("syscall", _CREATE_RULESET, struct.pack("QQQ", handled, 0, scopes), 24, 0)
    for paths, rights in ((readable, _READ_RIGHTS), (writable, handled), (listable, _READ_DIR)):
        for path in paths:
            _allow(ruleset, path, rights & handled)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    _call("syscall", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return bool(scopes)


def _allow(ruleset: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH)
    wanted = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
    _call("syscall", _ADD_RULE, ruleset, 1, struct.pack("=Qi", wanted, place), 0, about=path)
    os.close(place)


def _call(name: str, *arguments: int | bytes | None, about: str = "") -> int:
    function = getattr(_libc, name, None)
    if function is None:
        raise OSError(f"{name}: this system does not have this call")
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = function(*wide)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}", about or None)
    return result
