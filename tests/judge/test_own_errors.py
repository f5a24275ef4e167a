"""Whatever breaks in the judge is a record that blames no candidate, and the next candidate is judged."""

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.processes import run_process
from pkb.candidate import Candidate
from pkb.judge import judgement
from pkb.judge.correctness import reference
from pkb.judge.judge import Judge
from pkb.judge.own_errors import explain_exception
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds import nursery
from pkb.judge.worlds.world import World
from pkb.problems.size import Size
from pkb.problems.suite import load_problem
from pkb.record import Record, Verdict
from pkb.settings import Limits, ProblemSettings

PROBLEM = load_problem("broadcast")
SLEEPS = b"import time\ndef solution(tensor, src):\n    time.sleep(60)\n"
FULL_DISK = """
import errno, os, sys
from pathlib import Path
from pkb.sandbox import linux

user, group = os.getuid(), os.getgid()
try:
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    linux.mount("tmpfs", sys.argv[1], "tmpfs", options="size=1m,nr_inodes=200")
except OSError as error:
    print("refused", error)
    sys.exit()
os.environ["TMPDIR"] = sys.argv[1]

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.settings import ProblemSettings

problem, blocks = load_problem("broadcast"), []
with Judge("cpu") as judge:
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=1))
    judge.nursery
    try:
        for number in range(1000):
            blocks.append(Path(sys.argv[1], f"{number}"))
            blocks[-1].write_bytes(bytes(1 << 14))
    except OSError:
        pass
    record = judge.judge(setup, Candidate.reference(problem))
    print(record.verdict, record.evidence.type, "the disk is full" in record.reason)
    for block in blocks:
        block.unlink(missing_ok=True)
    print(judge.judge(setup, Candidate.reference(problem)).verdict)
print(os.listdir(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge("cpu", Limits(trial_s=20.0)) as own:
        yield own


@pytest.fixture
def setup(judge: Judge) -> Setup:
    return judge.pose(PROBLEM, ProblemSettings(nproc=2, trials=1, size=Size(3, 5)))


def judge_reference(judge: Judge, setup: Setup, out: Path | None = None) -> Record:
    return judge.judge(setup, Candidate.reference(PROBLEM), out=out)


def raise_always(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def overflow_stack(*_: Any) -> None:
    overflow_stack()


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad\x1b[31m news\u202e"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
        OSError(errno.ENOSPC, "No space left on device", "/tmp/pkb"),
        OSError(errno.EMFILE, "Too many open files"),
        MemoryError(),
        KeyError("missing" * 10_000),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_is_explained(error: Exception) -> None:
    failure = explain_exception(error)
    assert (failure.verdict, failure.evidence.type) == (Verdict.ENVIRONMENT, type(error).__name__)
    assert failure.reason.startswith(f"the judge raised {type(error).__name__}")
    assert failure.reason.isprintable()
    assert len(failure.reason) < 1000


def test_advice_names_what_has_run_out() -> None:
    assert "make room" in explain_exception(OSError(errno.ENOSPC, "No space left on device")).reason
    assert "ulimit -n" in explain_exception(OSError(errno.EMFILE, "Too many open files")).reason
    assert "report it" in explain_exception(ValueError("anything")).reason


def test_an_exception_while_values_are_compared(judge: Judge, setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(judgement, "check_values", overflow_stack)
        record = judge_reference(judge, setup)
    assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "judge")
    assert record.evidence.type == "RecursionError"
    assert 0 < len(record.evidence.traceback) <= 30
    assert "in overflow_stack" in record.evidence.traceback[-1]
    assert judge_reference(judge, setup).correct


def test_an_exception_while_the_reference_runs(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = judge.pose(PROBLEM, ProblemSettings(nproc=2, trials=1, size=Size(4, 5)))
    with monkeypatch.context() as patch:
        patch.setattr(reference, "compute_calls", raise_always(RuntimeError("shape '[3]' is invalid")))
        record = judge_reference(judge, setup)
    assert (record.verdict, record.evidence.type) == (Verdict.ENVIRONMENT, "RuntimeError")
    assert judge_reference(judge, setup).correct


def test_a_world_that_gets_no_folder(judge: Judge, setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    judge.nursery.wait_until_ready()
    descriptors, make_folder = len(os.listdir("/dev/fd")), Path.mkdir

    def refuse(path: Path, *rest: Any, **options: Any) -> None:
        if path.parent.parent == Path("/dev/shm"):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        make_folder(path, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                World(judge.nursery, 2, judge.limits)
    assert not [*judge.nursery.folder.glob("world-*")]
    assert len(os.listdir("/dev/fd")) == descriptors
    assert judge_reference(judge, setup).correct


def test_a_full_disk_is_said_in_the_record_and_ends_no_batch(tmp_path: Path) -> None:
    done = run_process([sys.executable, "-c", FULL_DISK, str(tmp_path)])
    if done.stdout.startswith("refused"):
        pytest.skip("this user may not mount anything")
    assert done.stdout.splitlines() == ["ENVIRONMENT OSError True", "CORRECT", "[]"], done.stderr


def test_a_record_that_cannot_be_written_is_returned(judge: Judge, setup: Setup, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    record = judge_reference(judge, setup, out=tmp_path / "file" / "sample")
    assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "record-files")
    assert record.evidence.details == {"verdict_before": "CORRECT"}
    record = judge_reference(judge, setup, out=tmp_path / "sample")
    assert record.correct, record.reason


def test_a_record_is_written_without_the_files_that_cannot_be(
    judge: Judge, setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "save_artifacts", raise_always(OSError(errno.ENOSPC, "No space left on device")))
    record = judge_reference(judge, setup, out=tmp_path)
    assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "record-files")
    assert Record.from_json((tmp_path / "record.json").read_text()) == record


def test_a_machine_that_cannot_be_described(judge: Judge, setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "describe_environment", raise_always(OSError("nvidia-smi is gone")))
    record = judge_reference(judge, setup)
    assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "environment")
    assert record.environment.platform == "cpu"


def signal_nursery_soon(judge: Judge, number: int) -> threading.Thread:
    """Send a signal to the nursery when a candidate's world runs."""
    process = judge.nursery.process

    def send() -> None:
        time.sleep(1.5)
        process.send_signal(number)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_nursery_that_is_killed_or_stopped_is_replaced(
    judge: Judge, setup: Setup, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    assert judge_reference(judge, setup).correct
    monkeypatch.setattr(nursery, "_NURSERY_S", 3.0)
    lost = judge.nursery
    thread, start = signal_nursery_soon(judge, number), time.monotonic()
    record = judge.judge(replace(setup, limits=Limits(trial_s=3.0)), Candidate.of(SLEEPS))
    thread.join()
    assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "nursery")
    assert time.monotonic() - start < 15
    monkeypatch.undo()
    assert judge_reference(judge, setup).correct
    assert not lost.folder.exists()
    assert not lost.shared.exists()
    assert lost.process.poll() is not None


def test_a_nursery_that_was_killed_between_judgements_is_not_missed(judge: Judge, setup: Setup) -> None:
    assert judge_reference(judge, setup).correct
    descriptors, threads = len(os.listdir("/dev/fd")), threading.active_count()
    waiting = World(judge.nursery, 2, judge.limits)
    waiting.start()
    judge.pool.references.append(waiting)
    judge.nursery.process.kill()
    judge.nursery.process.wait()
    assert judge_reference(judge, setup).correct
    assert (len(os.listdir("/dev/fd")), threading.active_count()) == (descriptors, threads)
    assert not waiting.folder.exists()
