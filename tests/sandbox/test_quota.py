"""Candidates that use up memory, disks and files, or leave keys behind. All limits are small."""

import ctypes
import os
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.confined import ALL_LEVELS, Locked, judge_candidate, run_attempt
from helpers.deadlines import DEADLINE_S
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.judge.worlds.world import World
from pkb.nursery.overuse import LimitedWorld
from pkb.problems.suite import load_problem
from pkb.sandbox import linux
from pkb.sandbox.cgroup import make_cgroup
from pkb.sandbox.quota import Quota
from pkb.settings import Limits

LIMIT = 256 << 20
"""Of one rank. The two ranks may use twice as much memory together, and write as much to files."""
KEY = "a key of the tests"
KEYCTL, ADD_KEY, SESSION_KEYRING = (250, 248, -3) if platform.machine() == "x86_64" else (219, 217, -3)
JOIN, UNLINK, READ = 1, 9, 11


@pytest.fixture(scope="module")
def the_small() -> Iterator[Locked]:
    # A session keyring of this process's own, which the nursery inherits.
    call(KEYCTL, JOIN, None)
    with Judge("cpu", Limits(load_s=20, trial_s=2 * DEADLINE_S, memory_bytes=LIMIT)) as judge:
        locked = Locked(judge)
        yield locked
        locked.restart()


@pytest.fixture
def small(the_small: Locked) -> Iterator[Locked]:
    yield the_small
    linux.prctl(linux.PR_SET_DUMPABLE, 1)


def call(*arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))


@ALL_LEVELS
def test_keys_of_the_user_cannot_be_read_and_none_is_left(small: Locked, level: str) -> None:
    planted = call(ADD_KEY, b"user", b"pkb-test", KEY.encode(), len(KEY), SESSION_KEYRING)
    if planted < 0:
        pytest.skip("this machine gives this user no keyring")
    body = f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        def call(*arguments):
            return libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
        text = ctypes.create_string_buffer(100)
        left = call({ADD_KEY}, b"user", b"left", b"left", 4, {SESSION_KEYRING})
        if call({KEYCTL}, {READ}, {planted}, text, 100) < 0 and left < 0: raise OSError
        found = text.value
        """
    try:
        assert KEY in run_attempt(small.at("off"), body)
        assert run_attempt(small.at(level), body).startswith("stopped")
    finally:
        call(KEYCTL, UNLINK, planted, SESSION_KEYRING)


@ALL_LEVELS
def test_sockets_to_the_host_of_a_virtual_machine_are_refused(small: Locked, level: str) -> None:
    assert run_attempt(small.at(level), "found = socket.socket(40, socket.SOCK_STREAM)") == "stopped by OSError"


@ALL_LEVELS
def test_memory_is_not_shared_outside_of_the_limit(small: Locked, level: str) -> None:
    judge = small.at(level)
    if (cgroup := make_cgroup("test", LIMIT, 100)) is not None:
        cgroup.remove()
        pytest.skip("here a cgroup counts shared memory too")
    ways = ["mmap.mmap(-1, 300 << 20)", "os.memfd_create('x')", "ctypes.CDLL(None).shmget(0, 300 << 20, 0o1600)"]
    # At the level `limits` all files are open.
    ways += [] if level == "limits" else ["open('/dev/zero', 'rb')"]
    body = "import ctypes, mmap\nfound = []\n"
    for way in ways:
        body += f"try:\n    found.append({way})\nexcept OSError:\n    pass\n"
    assert run_attempt(judge, body) == ("reached [-1]")


@pytest.mark.parametrize(("level", "folder"), [("namespaces", "/dev/shm"), ("namespaces", "."), ("landlock", ".")])
def test_files_have_a_limit(small: Locked, level: str, folder: str) -> None:
    body = f"""
        for n in range(6):
            open(f"{folder}/{{n}}", "wb").write(bytes(100 << 20))
        time.sleep(3)
        found = "600 MiB"
        """
    found = run_attempt(small.at(level), body)
    assert found.startswith("stopped by") or "to files; the limit is 256 MiB" in found


def test_deleted_files_count(small: Locked) -> None:
    body = """
        import tempfile
        kept = [tempfile.TemporaryFile() for _ in range(6)]
        for file in kept:
            file.write(bytes(100 << 20))
            file.flush()
        time.sleep(3)
        found = "600 MiB"
        """
    assert "to files; the limit is 256 MiB" in run_attempt(small.at("landlock"), body)
    assert run_attempt(small.at("namespaces"), body).startswith("stopped by")


def test_the_number_of_files_is_limited(small: Locked) -> None:
    body = """
        os.mkdir("many")
        for n in range(120_000):
            os.mkdir(f"many/{n}")
        found = "it"
        """
    assert run_attempt(small.at("namespaces"), body).startswith("stopped by")


def test_folders_are_watched_where_they_are_not_mounts(tmp_path: Path) -> None:
    def find_overuse() -> str | None:
        return LimitedWorld(quota, None, [str(tmp_path)]).find_overuse({}, lambda: [os.getpid()])

    quota = Quota(1 << 40, None, file_bytes=1 << 20, most_files=50)
    (tmp_path / "one").write_bytes(bytes(1 << 19))
    assert find_overuse() is None
    (tmp_path / "two").write_bytes(bytes(1 << 20))
    assert find_overuse() == "wrote 1 MiB to files; the limit is 1 MiB"
    (tmp_path / "two").unlink()
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(bytes(1 << 20))
        assert find_overuse() == "wrote 1 MiB to files; the limit is 1 MiB"
    for number in range(51):
        (tmp_path / f"empty-{number}").touch()
    assert find_overuse() == "left more than 50 files in its folders"


@pytest.mark.parametrize("level", ["namespaces", "limits"])
def test_memory_of_many_processes_is_added_up(small: Locked, level: str) -> None:
    hog = "import time; data = b'x' * (100 << 20); time.sleep(20)"
    body = f"""
        import sys
        for _ in range(8):
            subprocess.Popen([sys.executable, "-S", "-c", {hog!r}])
        time.sleep(15)
        found = "800 MiB"
        """
    found = run_attempt(small.at(level), body)
    assert "the limit is 512 MiB" in found or "needed more memory than 512 MiB" in found


def test_symmetric_memory_within_the_limit_works(small: Locked) -> None:
    judge = small.at("namespaces")
    source = (Path(__file__).parents[2] / "solutions" / "triton" / "1_allreduce_triton.py").read_bytes()
    record = judge_candidate(judge, Candidate.of(source))
    assert record.correct, record.reason


def test_the_record_says_what_held_and_by_which_means(small: Locked) -> None:
    facts = judge_candidate(small.at("namespaces"), Candidate.reference(load_problem("allreduce"))).environment.sandbox
    assert (facts.network, facts.keyring) == ("closed by a namespace", "closed by seccomp")
    assert (facts.files, facts.shared_memory) == ("closed by mounts", "closed by mounts")
    assert facts.memory in ("limited to 512 MiB by cgroup", "limited to 512 MiB by rlimit and watch")
    assert facts.writing == "limited to 256 MiB and 100000 files by tmpfs"


def test_a_cgroup_limits_what_enters_it() -> None:
    cgroup = make_cgroup("tests", LIMIT, 50)
    if cgroup is None:
        pytest.skip("this machine delegates no cgroup with the controllers memory and pids")
    pid = os.fork()
    if pid == 0:
        try:
            cgroup.enter()
            block = b"x" * (2 * LIMIT)
            os._exit(len(block) % 7)
        finally:
            os._exit(7)
    assert os.waitpid(pid, 0)[1] == 9
    assert cgroup.has_run_out_of_memory()
    cgroup.remove()
    assert not cgroup.folder.exists()


def test_worlds_within_their_quota_stay(small: Locked) -> None:
    judge = small.at("namespaces")
    limits = replace(judge.limits, memory_bytes=LIMIT)
    with World(judge.nursery, 2, limits, sandbox="namespaces") as world:
        world.start()
        assert world.number not in judge.nursery.overuse
