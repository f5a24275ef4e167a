"""The judge end to end: references, records, artifacts, timing."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import HIDDEN, PROBE, Setup
from pkb.judge.worlds.world import World
from pkb.problems.size import Size
from pkb.problems.suite import load_problem
from pkb.protocol.messages import Order
from pkb.record import SCHEMA, Pace, Record, Verdict
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings, Tolerance
from pkb.trial import Trial

SLOW = b"""
import time
import torch.distributed as dist

def solution(tensor):
    time.sleep(0.02)
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""


def test_each_trial_of_the_reference_is_computed_once(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    from pkb.judge.correctness import reference

    computed = []
    original = reference.compute_calls

    def compute_calls(world: World, setup: Setup, seeds: Seeds, trial: Trial) -> reference.Calls:
        computed.append((setup.find_size(trial), trial))
        return original(world, setup, seeds, trial)

    monkeypatch.setattr(reference, "compute_calls", compute_calls)
    setup = judge.pose("broadcast", ProblemSettings(trials=2, size=Size(3, 5)))
    for _ in range(4):
        assert judge.judge(setup, Candidate.reference(load_problem("broadcast"))).correct
    # The hidden size is one of a few; all other trials are the same in every judgement.
    assert len(computed) == len(set(computed))
    assert [trial for _, trial in computed if trial != HIDDEN] == [*setup.checked_trials, PROBE]


def test_records_and_artifacts_survive_the_disk(judge: Judge, tmp_path: Path) -> None:
    problem = load_problem("gather")
    record = judge.judge(judge.pose(problem, ProblemSettings(nproc=2)), Candidate.reference(problem), out=tmp_path)
    assert Record.from_json((tmp_path / "record.json").read_text()) == record
    assert json.loads(record.to_json())["schema"] == SCHEMA
    assert record.environment.platform == "cpu"
    saved = [torch.load(tmp_path / side / "rank_1.pt", weights_only=True) for side in ("reference", "candidate")]
    assert saved[0]["outputs"].keys() == {"call_0", "call_1", "call_2"}
    assert all(map(torch.equal, saved[0]["outputs"]["call_2"], saved[1]["outputs"]["call_2"]))


def test_what_a_rank_prints_is_kept(judge: Judge, tmp_path: Path) -> None:
    source = SLOW.replace(b"time.sleep(0.02)", b"print('hello from', dist.get_rank())")
    judge.judge(judge.pose("allreduce", ProblemSettings(nproc=2, trials=1)), Candidate.of(source), out=tmp_path)
    assert (tmp_path / "logs" / "rank_1.txt").read_text() == "hello from 1\n" * 9


def test_the_environment_is_scrubbed(judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = SLOW.replace(b"time.sleep(0.02)", b"import os; print(sorted(os.environ), os.listdir('.'))")
    monkeypatch.setenv("SECRET_API_KEY", "sk-123")
    with Judge("cpu") as fresh:
        fresh.judge(fresh.pose("allreduce", ProblemSettings(nproc=2, trials=1)), Candidate.of(source), out=tmp_path)
    log = (tmp_path / "logs" / "rank_0.txt").read_text()
    assert "SECRET_API_KEY" not in log
    assert "'WORLD_SIZE'" in log
    assert log.splitlines()[0].endswith("[]")


def test_timing_tells_slow_from_equal(judge: Judge) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    slow = judge.judge(setup, Candidate.of(SLOW), JudgementSettings(rigor=RIGORS["quick"]))
    assert slow.pace is Pace.SLOWER
    assert slow.timing is not None
    low, high = slow.timing.interval
    assert low <= slow.timing.speedup <= high < 1


def test_plain_tolerance_is_recorded(judge: Judge) -> None:
    problem = load_problem("allreduce")
    source = SLOW.replace(b"return out", b"return out * 1.001")
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=1))
    assert judge.judge(setup, Candidate.of(source)).verdict is Verdict.WRONG
    lenient = judge.judge(setup, Candidate.of(source), JudgementSettings(tolerance=Tolerance(1e-2, 1e-2)))
    # Whole numbers are still compared bit for bit: their sums are exact.
    assert lenient.verdict is Verdict.WRONG
    rms_norm = load_problem("tp_rms_norm")
    shown = rms_norm.show_source().replace("return local_weight * ", "return 1.001 * local_weight * ").encode()
    record = judge.judge(
        judge.pose(rms_norm, ProblemSettings(nproc=2)),
        Candidate.of(shown),
        JudgementSettings(tolerance=Tolerance(1e-2, 1e-2)),
    )
    assert (record.verdict, record.setup.compare) == (Verdict.CORRECT, Tolerance(0.01, 0.01))


def test_impossible_worlds_are_refused_with_the_reason(judge: Judge) -> None:
    with pytest.raises(UsageError, match=r"17_rope_allgather .*3 ranks.*the 8 heads.*1, 2, 4, 8"):
        judge.pose("rope_allgather", ProblemSettings(nproc=3))


def test_seeds_differ_by_rank_call_and_judge() -> None:
    seeds = Seeds()
    drawn = {seeds.of("1_allreduce", trial, call, rank) for trial in range(5) for call in range(3) for rank in range(4)}
    assert len(drawn) == 60
    assert seeds.of("x") == seeds.of("x") != Seeds().of("x")


def test_an_argument_that_may_be_overwritten_is_free(judge: Judge) -> None:
    problem = load_problem("vocab_parallel_cross_entropy_loss")
    scribbling = (
        problem.show_source().encode()
        + b"""
honest = solution

def solution(vocab_parallel_logits, target, group=None):
    loss = honest(vocab_parallel_logits, target, group)
    ARGUMENT.zero_()
    return loss
"""
    )
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=1))
    free = scribbling.replace(b"ARGUMENT", b"vocab_parallel_logits")
    assert judge.judge(setup, Candidate.of(free)).correct
    record = judge.judge(setup, Candidate.of(scribbling.replace(b"ARGUMENT", b"target")))
    assert (record.verdict, record.evidence.check) == (Verdict.WRONG, "inputs-unchanged")


def test_no_rank_runs_before_all_have_prepared(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preparing spoils symmetric buffers, to which others write in their calls."""
    events: list[str] = []
    send, collect = World.send, World.collect

    def spied_send(self: World, order: Any, *rest: Any) -> None:
        own = order if isinstance(order, Order) else order(0)
        events.append(f"{self.number} sent {type(own).__name__}")
        send(self, order, *rest)

    def spied_collect(self: World, order: Any, phase: str, seconds: float) -> list[Any]:
        answers = collect(self, order, phase, seconds)
        events.append(f"{self.number} collected {phase}")
        return answers

    monkeypatch.setattr(World, "send", spied_send)
    monkeypatch.setattr(World, "collect", spied_collect)
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=2))
    assert judge.judge(setup, Candidate.reference(load_problem("allreduce"))).correct
    runs = [(event.split()[0], before) for before, event in pairwise(events) if event.endswith("sent RunCalls")]
    assert len({world for world, _ in runs}) == 2
    assert {before for world, before in runs} == {f"{world} collected prepare" for world, _ in runs}
