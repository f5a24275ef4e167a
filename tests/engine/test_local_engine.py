"""One judgement at a time, in the background, and none that goes on after close()."""

import time
from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.engine import Job
from pkb.engine.local import LocalEngine, Stopped
from pkb.record import Verdict
from pkb.registry import load

RIGHT = b"""
import time
import torch.distributed as dist

def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""
SLOW = RIGHT.replace(b"    return", b"    time.sleep(0.2)\n    return")
WRONG = b"def solution(tensor):\n    return tensor.clone()\n"


def job(source: bytes, out: Path | None = None, trials: int = 1) -> Job:
    return Job(load("allreduce"), Candidate.of(source), {"nproc": 2, "trials": trials}, out=out)


def test_records_come_later(tmp_path: Path) -> None:
    with LocalEngine("cpu") as engine:
        futures = [engine.submit(job(source, tmp_path / name)) for name, source in (("a", RIGHT), ("b", WRONG))]
        assert [future.result().verdict for future in futures] == [Verdict.CORRECT, Verdict.WRONG]
    assert (tmp_path / "a" / "record.json").is_file()


def test_closing_ends_what_runs_and_drops_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, steps = LocalEngine("cpu"), list[str]()
    go_on = engine._go_on
    monkeypatch.setattr(engine, "_go_on", lambda step: (steps.append(step), go_on(step)))
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
        refused = engine.submit(Job(load("rope_allgather"), Candidate.of(RIGHT), {"nproc": 3}))
        assert "multiple of the world size" in str(refused.exception())
