"""The system calls that the kernel refuses to candidates: a filter in classic BPF, which is kept across fork and exec.

It is a list of what is refused, because torch, compilers and NVIDIA's driver use most of the others. It needs no
privileges, only `no_new_privs`.
"""

import errno
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

from pkb.sandbox import linux

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUALS, _AT_LEAST, _HAS_BITS = 0x15, 0x35, 0x45
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4
"""Offsets into what the filter sees of a call."""
_X32 = 0x40000000
"""The lowest number of a call by x86-64's third interface, whose numbers the table below does not have."""

_NEW_NAMESPACES = 0x7E020000
"""The flags of clone(2) that make a namespace."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _NETLINK_ROUTE = 1, 2, 10, 16, 0
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_SHARED_ANONYMOUS = 0x21
_READ_PERSONA = 0xFFFFFFFF

Instruction = tuple[int, int, int, int]
"""Operation, how many instructions to skip where its test holds and where it does not, operand."""


class _Machine(NamedTuple):
    architecture: int
    """The kernel's constant AUDIT_ARCH of the machine's own system calls."""
    column: int
    """The column of the machine's numbers in the tables below."""


_MACHINES = {"x86_64": _Machine(0xC000003E, 0), "aarch64": _Machine(0xC00000B7, 1)}

_Numbers = tuple[int | None, int | None]
"""The numbers of a call on x86-64 and on 64-bit Arm; None where the machine does not have the call."""

_REFUSED: dict[str, _Numbers] = {
    # Keyrings outlive the world, and hold the user's keys.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Access to other processes. pidfd_getfd stays: symmetric memory on GPUs may exchange descriptors by it.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    # Programs and rings inside the kernel: much code, many past holes, and calls that this filter would not see.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # The file system that the sandbox has set up.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    # A new user namespace has all capabilities in it, and so reaches most of the kernel's code.
    "unshare": (272, 97),
    "setns": (308, 268),
    # Files by handle lie outside of any mount.
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    # System V's and POSIX's objects outlive the world, and their memory is outside of every limit but a cgroup's.
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # The kernel itself, its modules, its log and the machine's settings.
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "nfsservctl": (180, 42),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    # The clocks of the machine.
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    # Old corners of x86.
    "modify_ldt": (154, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    "uselib": (134, None),
    # Memory that the kernel itself cannot read: no watch would see it.
    "memfd_secret": (447, 447),
}
"""Calls that fail with EPERM, whatever their arguments are."""

_CLONE: _Numbers = (56, 220)
_CLONE3: _Numbers = (435, 435)
_IOCTL: _Numbers = (16, 29)
_SOCKET: _Numbers = (41, 198)
_SOCKETPAIR: _Numbers = (53, 199)
_PERSONALITY: _Numbers = (135, 92)
_MMAP: _Numbers = (9, 222)
_MEMFD_CREATE: _Numbers = (319, 279)


def install_filter(shares_memory: bool) -> None:
    """Refuse calls to this process and all its future children; OSError where the kernel or machine cannot."""
    linux.apply_seccomp(make_filter(os.uname().machine, shares_memory))


def make_filter(machine: str, shares_memory: bool) -> bytes:
    """Return the filter's program for a machine.

    `shares_memory` is whether memory may be shared without a file. No limit but a cgroup's counts such memory.
    """
    if machine not in _MACHINES:
        raise OSError(f"no table of system calls for {machine}")
    architecture, column = _MACHINES[machine]
    program = [_load(_ARCHITECTURE), (_EQUALS, 1, 0, architecture), _refuse(errno.EPERM), _load(_NUMBER)]
    if machine == "x86_64":
        program += [(_AT_LEAST, 0, 1, _X32), _refuse(errno.ENOSYS)]
    for numbers, body in _list_rules(shares_memory):
        if (number := numbers[column]) is not None:
            program += [(_EQUALS, 0, len(body), number), *body]
    return b"".join(struct.pack("HBBI", *step) for step in [*program, _return(_ALLOW)])


def _list_rules(shares_memory: bool) -> Iterable[tuple[_Numbers, list[Instruction]]]:
    """Yield calls, and the instructions that decide about each: frequent calls first."""
    if not shares_memory:
        flags = [_load_argument(3), (_AND, 0, 0, _SHARED_ANONYMOUS)]
        yield _MMAP, [*flags, *_refuse_if(_EQUALS, _SHARED_ANONYMOUS), _return(_ALLOW)]
        # Libraries then take a temporary file, whose memory is limited.
        yield _MEMFD_CREATE, [_refuse(errno.ENOSYS)]
    # Characters that are pushed into a terminal would be typed into the user's shell.
    pushes = [*_refuse_if(_EQUALS, _TIOCSTI), *_refuse_if(_EQUALS, _TIOCLINUX)]
    yield _IOCTL, [_load_argument(1), *pushes, _return(_ALLOW)]
    yield _CLONE, [_load_argument(0), *_refuse_if(_HAS_BITS, _NEW_NAMESPACES), _return(_ALLOW)]
    # Its flags are in memory, where no filter can look. The C library then uses clone.
    yield _CLONE3, [_refuse(errno.ENOSYS)]
    for numbers in (_SOCKET, _SOCKETPAIR):
        yield numbers, _decide_about_family()
    known = [*_allow_if(_EQUALS, 0), *_allow_if(_EQUALS, _READ_PERSONA)]
    yield _PERSONALITY, [_load_argument(0), *known, _refuse(errno.EPERM)]
    for numbers in _REFUSED.values():
        yield numbers, [_refuse(errno.EPERM)]


def _decide_about_family() -> list[Instruction]:
    """Return the instructions that allow families of sockets which a network namespace confines, and no others.

    Above all AF_VSOCK leads out: to the host of a virtual machine. The C library lists interfaces by NETLINK_ROUTE.
    """
    confined = [step for family in (_AF_UNIX, _AF_INET, _AF_INET6) for step in _allow_if(_EQUALS, family)]
    routes = [_load_argument(2), *_allow_if(_EQUALS, _NETLINK_ROUTE)]
    netlink = [(_EQUALS, 0, len(routes), _AF_NETLINK), *routes]
    return [_load_argument(0), *confined, *netlink, _refuse(errno.EAFNOSUPPORT)]


def _load(offset: int) -> Instruction:
    return _LOAD, 0, 0, offset


def _load_argument(number: int) -> Instruction:
    """Return the load of an argument's lower half, which is all that the kernel reads of an int."""
    return _load(16 + 8 * number)


def _return(value: int) -> Instruction:
    return _RETURN, 0, 0, value


def _refuse(code: int) -> Instruction:
    return _return(_ERRNO | code)


def _refuse_if(test: int, operand: int) -> list[Instruction]:
    return [(test, 0, 1, operand), _refuse(errno.EPERM)]


def _allow_if(test: int, operand: int) -> list[Instruction]:
    return [(test, 0, 1, operand), _return(_ALLOW)]
