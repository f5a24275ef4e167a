"""The filter of system calls: its program on both machines, step by step, and real calls under it on this one."""

import errno
import json
import os
import platform
import socket
import struct
import subprocess
import sys

import pytest

from pkb.sandbox import seccomp
from pkb.sandbox.seccomp import make_filter

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
ON_BOTH = pytest.mark.parametrize("machine", MACHINES)
I386, ALLOWED = 0x40000003, 0
OTHER_CALLS = {"read": (0, 63), "openat": (257, 56), "execve": (59, 221), "futex": (202, 98), "pidfd_getfd": (438, 438)}
NEW_USER, THREAD, FORK = 0x10000000, 0x3D0F00, 0x1200011
SHARED, PRIVATE, ANONYMOUS = 1, 2, 0x20


def decide(machine: str, number: int, *arguments: int, shares_memory: bool = False, architecture: int = 0) -> int:
    """Run the filter's program on one call; return the error that it ends with, or 0."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    seen = struct.pack("=IIQ6Q", number, architecture or MACHINES[machine][0], 0, *values)
    program = [*struct.iter_unpack("HBBI", make_filter(machine, shares_memory))]
    here = held = 0
    while True:
        code, jump_true, jump_false, operand = program[here]
        here += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("=I", seen, operand)
            case 0x54:
                held &= operand
            case 0x06:
                return 0 if operand == 0x7FFF0000 else operand & 0xFFFF
            case _:
                tests = {0x15: held == operand, 0x35: held >= operand, 0x45: bool(held & operand)}
                here += jump_true if tests[code] else jump_false


def number_of(machine: str, numbers: tuple[int | None, int | None]) -> int:
    found = numbers[MACHINES[machine][1]]
    assert found is not None
    return found


@ON_BOTH
def test_every_call_of_the_table_is_refused(machine: str) -> None:
    column = MACHINES[machine][1]
    numbers = [row[column] for row in seccomp._REFUSED.values() if row[column] is not None]
    assert len(numbers) > 55
    assert {decide(machine, number) for number in numbers if number is not None} == {errno.EPERM}


@ON_BOTH
def test_ordinary_calls_are_allowed(machine: str) -> None:
    assert {decide(machine, number_of(machine, row)) for row in OTHER_CALLS.values()} == {ALLOWED}


@ON_BOTH
@pytest.mark.parametrize("call", ["_SOCKET", "_SOCKETPAIR"])
def test_only_families_that_a_namespace_confines_are_allowed(machine: str, call: str) -> None:
    number = number_of(machine, getattr(seccomp, call))
    for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        assert decide(machine, number, family, socket.SOCK_STREAM, 0) == ALLOWED
    # The kernel reads 32 bits: a family must not be hidden behind the upper half of its register.
    for family in (0, 38, 40, 44, 40 | 1 << 40, (1 << 32) + 17):
        assert decide(machine, number, family, 0, 0) == errno.EAFNOSUPPORT
    assert decide(machine, number, socket.AF_NETLINK, 0, 9) == errno.EAFNOSUPPORT


@ON_BOTH
def test_processes_and_threads_can_be_started_but_no_namespaces(machine: str) -> None:
    number = number_of(machine, seccomp._CLONE)
    assert decide(machine, number, THREAD) == decide(machine, number, FORK) == ALLOWED
    for shift in (17, 25, 26, 27, 28, 29, 30):
        assert decide(machine, number, 1 << shift | 17) == errno.EPERM
    assert decide(machine, number_of(machine, seccomp._CLONE3)) == errno.ENOSYS


@ON_BOTH
def test_a_terminal_cannot_be_typed_into(machine: str) -> None:
    number = number_of(machine, seccomp._IOCTL)
    for command in (0x5412, 0x541C, 1 << 32 | 0x5412):
        assert decide(machine, number, 0, command) == errno.EPERM
    assert decide(machine, number, 0, 0x5401) == ALLOWED


@ON_BOTH
def test_memory_is_shared_by_files_unless_a_cgroup_counts_it(machine: str) -> None:
    number, memfd = number_of(machine, seccomp._MMAP), number_of(machine, seccomp._MEMFD_CREATE)
    assert decide(machine, number, 0, 4096, 3, SHARED | ANONYMOUS) == errno.EPERM
    assert decide(machine, number, 0, 4096, 3, PRIVATE | ANONYMOUS) == ALLOWED
    assert decide(machine, number, 0, 4096, 3, SHARED) == ALLOWED
    assert decide(machine, memfd) == errno.ENOSYS
    assert decide(machine, number, 0, 4096, 3, SHARED | ANONYMOUS, shares_memory=True) == ALLOWED
    assert decide(machine, memfd, shares_memory=True) == ALLOWED


@ON_BOTH
def test_other_interfaces_of_the_kernel_are_refused(machine: str) -> None:
    assert decide(machine, 3, architecture=I386) == errno.EPERM
    if machine == "x86_64":
        assert decide(machine, 0x40000000 | 1) == errno.ENOSYS


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        make_filter("riscv64", shares_memory=True)


PROGRAM = """
import ctypes, errno, json, os, sys
from pkb.sandbox import linux, seccomp

linux.drop_privileges()
linux.join_new_keyring()
seccomp.install_filter(shares_memory=False)
libc = ctypes.CDLL(None, use_errno=True)
column = {"x86_64": 0, "aarch64": 1}[os.uname().machine]


def call(number, *arguments):
    ctypes.set_errno(0)
    wide = [ctypes.c_long(value) for value in (*arguments, *[0] * (6 - len(arguments)))]
    libc.syscall(ctypes.c_long(number), *wide)
    return ctypes.get_errno()


# Nothing else is tried where the filter does not hold.
assert call(seccomp._REFUSED["keyctl"][column], 0, -3, 0) == errno.EPERM
found = {name: call(row[column]) for name, row in seccomp._REFUSED.items() if row[column] is not None}
found["clone3"] = call(seccomp._CLONE3[column])
found["memfd_create"] = call(seccomp._MEMFD_CREATE[column])
found["vsock"] = call(seccomp._SOCKET[column], 40, 1, 0)
found["clone"] = call(seccomp._CLONE[column], 0x10000011)
found["mmap"] = call(seccomp._MMAP[column], 0, 4096, 3, 0x21, -1)
print(json.dumps(found))
"""

ORDINARY = """
import socket, subprocess, sys, threading
from pkb.sandbox import linux, seccomp

linux.drop_privileges()
seccomp.install_filter(shares_memory=False)
seen = []
thread = threading.Thread(target=seen.append, args=(1,))
thread.start()
thread.join()
seen.append(subprocess.run(["sh", "-c", "echo 2"], capture_output=True, text=True, check=True).stdout)
seen.append(socket.getaddrinfo("127.0.0.1", 80)[0][4])
seen.append(len(socket.if_nameindex()))
left, right = socket.socketpair()
left.send(b"x")
print(len(seen))
"""


def run(program: str) -> str:
    if platform.machine() not in MACHINES or sys.platform != "linux":
        pytest.skip("there is no table of system calls for this machine")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_real_calls_are_refused() -> None:
    found = json.loads(run(PROGRAM))
    other = {"clone3": errno.ENOSYS, "memfd_create": errno.ENOSYS, "vsock": errno.EAFNOSUPPORT}
    assert found == dict.fromkeys(found, errno.EPERM) | other


def test_threads_processes_and_sockets_work_under_the_filter() -> None:
    assert run(ORDINARY) == "4\n"
