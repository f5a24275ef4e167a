"""Processes that ranks leave behind: each is put down to the world that it came from."""

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from helpers.processes import run_process
from pkb.judge.judge import Judge
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.world import World
from pkb.problems.suite import load_problem
from pkb.protocol.messages import LoadSolution
from pkb.record import Verdict

SLEEPER = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
ADOPTED = """
import os, subprocess, sys
if os.fork() == 0:
    {first}
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    os._exit(0)
os.wait()
"""
NUMBERED = """
import os, time
for _ in range(500):
    open("/proc/sys/kernel/ns_last_pid", "w").write(str({pid} - 1))
    if (child := os.fork()) == 0:
        if os.getpid() != {pid}:
            os._exit(0)
        os.setsid()
        time.sleep(600)
    if child == {pid}:
        break
    os.waitpid(child, 0)
else:
    raise RuntimeError("somebody else has that number")
"""
WRITER = """
import itertools, threading

def write():
    for number in itertools.count():
        open(f"{threading.get_ident()}-{number}", "w").close()

for _ in range(4):
    threading.Thread(target=write, daemon=True).start()
"""
KILLED = """
import os, signal, time
from pkb.judge.judge import Judge
from pkb.judge.worlds.world import World

judge = Judge("cpu")
nursery = judge.begin_nursery()
print(nursery.folder, nursery.shared, flush=True)
{first}
os.kill(os.getpid(), signal.SIGKILL)
"""
TWO_EXITS_UNREAD = """
world = World(judge.nursery, 2, judge.limits)
world.start()
world.leave()
time.sleep(2)
"""
DEEP = """
here = os.open(nursery.folder, os.O_RDONLY)
for _ in range(3000):
    os.mkdir("d", dir_fd=here)
    above, here = here, os.open("d", os.O_RDONLY, dir_fd=here)
    os.close(above)
"""
SOLUTION = "\ndef solution(tensor):\n    return tensor\n"


@contextmanager
def started(judge: Judge, blame: Verdict) -> Iterator[World]:
    with World(judge.nursery, 1, judge.limits, blame=blame) as world:
        world.start()
        yield world


def load_in(world: World, source: str, folder: Path) -> None:
    file = folder / "candidate.py"
    file.write_text(source + SOLUTION)
    problem = shutil.copy(load_problem("allreduce").path, folder)
    world.ask(LoadSolution(str(problem), str(file)), "load", 30)


@pytest.mark.parametrize("first", ["pass", "os.setsid()"])
def test_what_a_candidate_leaves_is_not_swept_away_with_a_reference(judge: Judge, tmp_path: Path, first: str) -> None:
    with started(judge, Verdict.ENVIRONMENT) as ours, started(judge, Verdict.CRASH) as theirs:
        load_in(theirs, ADOPTED.format(first=first), tmp_path)
        assert ours.end() == []
        (left,) = theirs.end()
        assert "sleep(600)" in left


def test_what_a_reference_leaves_is_not_put_down_to_a_candidate(judge: Judge, tmp_path: Path) -> None:
    with started(judge, Verdict.ENVIRONMENT) as ours, started(judge, Verdict.CRASH) as theirs:
        load_in(ours, SLEEPER, tmp_path)
        ours.leave()
        assert ours._find_exit_code(0) == 0
        assert theirs.end() == []
        (left,) = ours.end()
        assert "sleep(600)" in left


def test_a_number_that_a_rank_once_had_hides_nobody(judge: Judge, tmp_path: Path) -> None:
    try:
        Path("/proc/sys/kernel/ns_last_pid").write_text("1000")
    except OSError as error:
        pytest.skip(f"no right to choose the number of a process here: {error.strerror}")
    judge.nursery.wait_until_ready()
    nursery = psutil.Process(judge.nursery.process.pid)
    before = {process.pid for process in nursery.children()}
    with started(judge, Verdict.ENVIRONMENT):
        (once,) = {process.pid for process in nursery.children()} - before
    with started(judge, Verdict.CRASH) as theirs:
        load_in(theirs, NUMBERED.format(pid=once), tmp_path)
        assert len(theirs.end()) == 1
    assert not psutil.pid_exists(once)


@pytest.mark.parametrize("end", [lambda judge: judge.nursery.process.kill(), Judge.interrupt])
def test_no_folder_is_left_though_ranks_still_write(end: Callable[[Judge], None]) -> None:
    judge = Judge("cpu")
    nursery = judge.nursery
    world = judge.sandbox.open_world(nursery, 4, judge.limits)
    load_in(world, WRITER, world.folder)
    end(judge)
    judge.close()
    assert not nursery.folder.exists()
    assert not nursery.shared.exists()


def test_a_nursery_that_ends_has_nothing_to_complain_of() -> None:
    program = 'from pkb.judge.judge import Judge\nwith Judge("cpu") as judge:\n    judge.nursery'
    ended = run_process([sys.executable, "-c", program])
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    "first",
    ["", TWO_EXITS_UNREAD, DEEP],
    ids=["before it was ready", "with messages unread", "with folders in folders"],
)
def test_a_nursery_cleans_up_after_a_judge_that_was_killed(first: str) -> None:
    killed = run_process([sys.executable, "-c", KILLED.format(first=first)])
    folders = [Path(folder) for folder in killed.stdout.split()]
    assert (killed.returncode, len(folders)) == (-signal.SIGKILL, 2)
    deadline = time.monotonic() + 30
    while any(folder.exists() for folder in folders):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_answer_that_an_interrupt_kept_from_being_taken_is_not_the_next_ones(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(judge.nursery, 1, judge.limits)
    world.start()

    def interrupted(self: Nursery, deadline: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Nursery, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            world.measure_usage()
    assert world.list_helpers() == []
    assert world.end(kill=True) == []
