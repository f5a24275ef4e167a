"""One judgement at a time, in the background, and none that goes on after close()."""

import contextlib
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pkb.candidate import Candidate
from pkb.engine import Job, Phase, Site, list_engines, make_engine
from pkb.engine.local import LocalEngine, Stopped
from pkb.errors import UsageError
from pkb.problems.suite import load_problem
from pkb.record import Verdict
from pkb.settings import ProblemSettings

RIGHT = b"""
import time
import torch.distributed as dist

def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""
SLOW = RIGHT.replace(b"    return", b"    time.sleep(0.2)\n    return")
COMPILED = (
    RIGHT
    + b"""
from torch.utils.cpp_extension import load_inline

load_inline("ahead", 'extern "C" int one() { return 1; }', no_implicit_headers=True, is_python_module=False)
"""
)
BROKEN = COMPILED.replace(b"return 1;", b"return 1")
ENDLESS = COMPILED.replace(b"load_inline(", b"import os; os.mkfifo('never.h')\nload_inline(").replace(
    b"'extern", b"""f'#include "{os.path.abspath("never.h")}"\\n' 'extern"""
)
COMPILERS = {"cc1plus", "clang", "clang++"}
WRONG = b"def solution(tensor):\n    return tensor.clone()\n"


def running() -> set[str]:
    """The programs that this process has started, and those that they have."""
    names = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            names.add(process.name())
    return names


def job(source: bytes, out: Path | None = None, trials: int = 1) -> Job:
    return Job.of(load_problem("allreduce"), Candidate.of(source), ProblemSettings(2, trials=trials), out=out)


def test_records_come_later(tmp_path: Path) -> None:
    with LocalEngine("cpu") as engine:
        futures = [engine.submit(job(source, tmp_path / name)) for name, source in (("a", RIGHT), ("b", WRONG))]
        assert [future.result().verdict for future in futures] == [Verdict.CORRECT, Verdict.WRONG]
    assert (tmp_path / "a" / "record.json").is_file()


def test_closing_ends_what_runs_and_drops_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, steps = LocalEngine("cpu"), list[str]()
    go_on = engine._stop_if_closing
    monkeypatch.setattr(engine, "_stop_if_closing", lambda step: (steps.append(step), go_on(step)))
    begun = engine.submit(job(SLOW, tmp_path / "begun", trials=20))
    waiting = engine.submit(job(RIGHT, tmp_path / "waiting"))
    engine.submit(job(WRONG))
    while "trial 2 of 22" not in steps:
        time.sleep(0.01)
    engine.close()
    with pytest.raises(Stopped):
        begun.result()
    assert waiting.cancelled()
    assert not list(tmp_path.rglob("record.json"))
    assert steps[-1] != "trial 22 of 22"


def test_what_cannot_be_posed_is_said_by_the_future() -> None:
    with LocalEngine("cpu") as engine:
        refused = engine.submit(Job.of(load_problem("rope_allgather"), Candidate.of(RIGHT), ProblemSettings(3)))
        assert "multiple of the world size" in str(refused.exception())


def test_a_candidate_is_compiled_while_another_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is held until the second is compiled: one after the other, this would never end."""
    with LocalEngine("cpu") as engine:
        go_on, compiled = engine._stop_if_closing, threading.Event()
        monkeypatch.setattr(
            engine, "_stop_if_closing", lambda step: (step == "reference" and compiled.wait()) or go_on(step)
        )
        phases: list[Phase] = []

        def told(phase: Phase) -> None:
            phases.append(phase)
            if phase is Phase.QUEUED:
                compiled.set()

        records = [engine.submit(job(RIGHT)), engine.submit(job(COMPILED), told)]
        assert [record.result().verdict for record in records] == [Verdict.CORRECT, Verdict.CORRECT]
        assert phases == [Phase.BUILDING, Phase.QUEUED, Phase.JUDGING]
        assert "build" not in records[1].result().seconds, "the judge had nothing left to build"


def test_what_does_not_compile_is_not_compiled_again() -> None:
    with LocalEngine("cpu") as engine:
        record = engine.submit(job(BROKEN)).result()
        assert record.verdict is Verdict.BUILD_FAILED
        assert any("error" in line for line in record.evidence.errors)
        assert "build" not in record.seconds


def test_what_the_screen_rejects_is_not_compiled() -> None:
    phases: list[Phase] = []
    with LocalEngine("cpu") as engine:
        record = engine.submit(job(COMPILED + b"import subprocess\nsubprocess.run('ls')\n"), phases.append).result()
        assert record.verdict is Verdict.REJECTED
        assert not engine._builders


def test_closing_ends_a_build(tmp_path: Path) -> None:
    engine = LocalEngine("cpu")
    record = engine.submit(job(ENDLESS, tmp_path / "endless"))
    while not running() & COMPILERS:
        assert not record.done(), record.result().reason
        time.sleep(0.05)
    engine.close()
    assert not running() & COMPILERS
    assert record.cancelled() or isinstance(record.exception(), Stopped)
    assert not list(tmp_path.rglob("record.json"))


def test_a_fresh_job_has_seeds_of_its_own() -> None:
    with LocalEngine("cpu") as engine:
        seeds = []
        for fresh in (False, False, True):
            engine.submit(replace(job(RIGHT), fresh=fresh)).result()
            seeds.append(engine.judge.seeds)
        assert seeds[0] is seeds[1]
        assert seeds[2] is not seeds[1]


def test_engines_are_found_by_name() -> None:
    assert list_engines() == ["local"]
    engine = make_engine("local", Site("cpu"))
    assert isinstance(engine, LocalEngine)
    engine.close()
    with pytest.raises(UsageError, match="unknown engine 'cloud'; choose from local"):
        make_engine("cloud", Site())
