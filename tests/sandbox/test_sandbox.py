"""Candidates that try to get out. Each attempt is real: with the sandbox off it succeeds."""

import hashlib
import os
import pwd
import shutil
import signal
import socket
from pathlib import Path

import psutil
import pytest

from helpers.confined import ALL_LEVELS, Locked, judge_candidate, list_descendants, run_attempt, use_sandbox
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.failure import Failure
from pkb.judge.worlds.sandboxed import Sandbox, is_closed
from pkb.judge.worlds.world import World
from pkb.problems.suite import load_problem
from pkb.record import SandboxFacts, Verdict
from pkb.settings import Limits

SOLUTIONS = Path(__file__).parents[2] / "solutions" / "triton"
SECRET = "a secret of the tests"


def stopped_at(locked: Locked, level: str, body: str) -> None:
    """The attempt succeeds with the sandbox off, and not at this level."""
    assert run_attempt(locked.at("off"), body).startswith("reached")
    assert run_attempt(locked.at(level), body).startswith("stopped")


CLOSED_LEVELS = pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
FILE_LEVELS = pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])


@CLOSED_LEVELS
def test_it_cannot_connect_to_the_outside(locked: Locked, level: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        stopped_at(locked, level, f"socket.create_connection(('127.0.0.1', {port}), timeout=3)\nfound = 'it'")


@FILE_LEVELS
def test_it_cannot_read_the_tests_folder(locked: Locked, level: str, tmp_path: Path) -> None:
    (tmp_path / "expected").write_text(SECRET)
    stopped_at(locked, level, f"found = open({str(tmp_path / 'expected')!r}).read()")


@FILE_LEVELS
def test_it_cannot_read_the_home_folder(locked: Locked, level: str) -> None:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    if not os.access(home, os.W_OK):
        pytest.skip(f"the home folder {home} of this user is not writable, so no secret can be put there")
    secret = home / f".pkb-test-{os.getpid()}"
    secret.write_text(SECRET)
    try:
        stopped_at(locked, level, f"found = open({str(secret)!r}).read()")
    finally:
        secret.unlink()


@FILE_LEVELS
def test_it_cannot_read_the_project(locked: Locked, level: str) -> None:
    stopped_at(locked, level, f"found = os.listdir({str(SOLUTIONS)!r})")


@FILE_LEVELS
def test_it_cannot_see_other_worlds(locked: Locked, level: str) -> None:
    judge = locked.at(level)
    with World(judge.nursery, 1, judge.limits) as other:
        for folder in (other.folder, other.shared):
            (folder / "answer").write_text(SECRET)
            stopped_at(locked, level, f"found = open({str(folder / 'answer')!r}).read()")


@FILE_LEVELS
def test_it_cannot_write_outside_its_folder(locked: Locked, level: str, tmp_path: Path) -> None:
    stopped_at(locked, level, f"found = open({str(tmp_path / 'left')!r}, 'w').write('x')")


@FILE_LEVELS
def test_it_cannot_plant_a_file_in_pkb(locked: Locked, level: str) -> None:
    folder = Path(load_problem("allreduce").path).parent
    if not os.access(folder, os.W_OK):
        pytest.skip("pkb is installed where this user cannot write in any case")
    planted = folder / f"planted_{os.getpid()}.py"
    try:
        stopped_at(locked, level, f"found = open({str(planted)!r}, 'w').write('x')")
    finally:
        planted.unlink(missing_ok=True)


@FILE_LEVELS
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_what_it_leaves_in_common_folders_is_not_there_outside(locked: Locked, level: str, folder: str) -> None:
    left = Path(folder, f"pkb-test-left-{os.getpid()}")
    body = f"open({str(left)!r}, 'w').write('x')\nfound = 'it'"
    try:
        assert run_attempt(locked.at("off"), body).startswith("reached")
        assert left.exists()
        left.unlink()
        run_attempt(locked.at(level), body)
        assert not left.exists()
    finally:
        left.unlink(missing_ok=True)


@ALL_LEVELS
def test_keys_and_tokens_are_not_in_its_environment(
    locked: Locked, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "NVIDIA_API_KEY", "CUDA_SECRET"):
        monkeypatch.setenv(name, SECRET)
    # The nursery takes its environment when it starts.
    locked.restart()
    message = run_attempt(locked.at(level), "found = dict(os.environ)")
    assert "WORLD_SIZE" in message
    assert SECRET not in message


@ALL_LEVELS
def test_it_cannot_read_the_judges_environment_or_the_nurserys_memory(locked: Locked, level: str) -> None:
    expected = hashlib.sha256(Path("/proc/self/environ").read_bytes()).hexdigest()
    # In a namespace of its own the judge's number may be another process's.
    body = f"""
        seen = hashlib.sha256(open("/proc/{os.getpid()}/environ", "rb").read()).hexdigest()
        if seen != "{expected}": raise OSError
        found = seen
        """
    stopped_at(locked, level, body)
    nursery = locked.judge.nursery.process.pid
    assert run_attempt(locked.at(level), f"found = open('/proc/{nursery}/mem', 'rb')").startswith("stopped")


@FILE_LEVELS
def test_it_cannot_signal_the_judge(locked: Locked, level: str) -> None:
    if locked.at(level).sandbox.facts.processes == "open":
        pytest.skip("Landlock keeps signals in from its sixth version on (Linux 6.12)")
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR2, lambda number, _: heard.append(number))
    try:
        run_attempt(locked.at("off"), f"os.kill({os.getpid()}, {signal.SIGUSR2:d})\nfound = 'it'")
        assert heard
        heard.clear()
        run_attempt(locked.at(level), f"os.kill({os.getpid()}, {signal.SIGUSR2:d})\nfound = 'it'")
        assert not heard
    finally:
        signal.signal(signal.SIGUSR2, before)


@ALL_LEVELS
def test_it_has_no_privileges_and_cannot_gain_any(locked: Locked, level: str) -> None:
    message = run_attempt(locked.at(level), "found = ' '.join(open('/proc/self/status').read().split())")
    assert "CapPrm: 0000000000000000 CapEff: 0000000000000000" in message
    assert "NoNewPrivs: 1" in message


@ALL_LEVELS
def test_right_kernels_stay_right(locked: Locked, level: str) -> None:
    judge = locked.at(level)
    for candidate in (
        Candidate.reference(load_problem("allreduce")),
        Candidate.read(SOLUTIONS / "1_allreduce_triton.py"),
    ):
        record = judge_candidate(judge, candidate, nproc=4)
        assert record.correct, record.reason
        assert record.environment.sandbox.level == level


@ALL_LEVELS
def test_a_compiler_works(locked: Locked, level: str) -> None:
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler here")
    body = """
        open("one.c", "w").write("#include <stdio.h>\\nint main(void) { return puts(\\"compiled\\") < 0; }")
        subprocess.run(["cc", "one.c", "-o", "one"], check=True)
        found = subprocess.run(["./one"], capture_output=True, text=True, check=True).stdout
        """
    assert run_attempt(locked.at(level), body) == "reached compiled"


@ALL_LEVELS
def test_what_it_leaves_running_is_found(locked: Locked, level: str) -> None:
    judge = locked.at(level)
    before = list_descendants()
    source = "import subprocess, torch.distributed as dist\n\ndef solution(tensor):\n    out = tensor.clone()\n"
    source += "    dist.all_reduce(out)\n    subprocess.Popen(['setsid', 'sleep', '1000'])\n    return out\n"
    record = judge_candidate(judge, Candidate.of(source.encode()))
    assert record.verdict is Verdict.CHEAT, record.reason
    assert any("sleep 1000" in command for command in record.evidence.details["processes"])
    assert list_descendants() == before


@ALL_LEVELS
def test_ranks_die_with_the_nursery(locked: Locked, level: str) -> None:
    judge = locked.at(level)
    world = judge.sandbox.open_world(judge.nursery, 2, judge.limits)
    started = psutil.Process(world.nursery.process.pid)
    family = started.children(recursive=True)
    # Bubblewrap puts two processes of its own before it.
    nursery = next(process for process in (started, *family) if len(process.children()) >= 2)
    nursery.kill()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    locked.restart()


def test_off_is_put_on_record(locked: Locked) -> None:
    record = judge_candidate(locked.at("off"), Candidate.reference(load_problem("allreduce")))
    assert (record.verdict, record.environment.sandbox) == (Verdict.CORRECT, SandboxFacts("off"))


def test_require_is_met_by_a_closed_level(locked: Locked) -> None:
    judge = locked.at("namespaces")
    use_sandbox(judge, Sandbox("require"))
    record = judge_candidate(judge, Candidate.reference(load_problem("allreduce")))
    assert record.correct
    assert is_closed(record.environment.sandbox)


def test_require_that_cannot_be_met_is_no_fault_of_the_candidate(locked: Locked) -> None:
    use_sandbox(locked.judge, Sandbox("require", strongest="landlock"))
    record = judge_candidate(locked.judge, Candidate.reference(load_problem("allreduce")))
    assert record.verdict is Verdict.ENVIRONMENT
    assert "which --sandbox require asks for" in record.reason
    assert "bubblewrap" in record.reason


def test_a_level_that_cannot_start_ranks_is_given_up_only_before_it_has_worked(locked: Locked) -> None:
    never = Limits(start_s=0.0)
    judge = locked.at("limits")
    fresh = Sandbox(strongest="limits")
    with pytest.raises(Failure):
        fresh.open_world(judge.nursery, 2, never)
    fresh.open_world(judge.nursery, 2, judge.limits).end()
    assert fresh.facts.level == "off"
    assert "did not finish start" in fresh.facts.refused["limits"]

    with pytest.raises(Failure):
        judge.sandbox.open_world(judge.nursery, 2, never)
    judge.sandbox.open_world(judge.nursery, 2, judge.limits).end()
    assert judge.sandbox.facts.level == "limits"


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(UsageError, match="choose from auto, require, off"):
        Sandbox("maybe")
