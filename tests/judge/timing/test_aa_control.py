"""The reference timed in both worlds, before one of them is the candidate's."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers.unequal import let_hosts_be_ahead, let_processes_differ
from pkb.candidate import Candidate
from pkb.hardware.roofline import Hardware
from pkb.judge.judge import Judge
from pkb.judge.timing.aa_control import needs_control
from pkb.judge.timing.blocks import TimedWorld
from pkb.judge.worlds.world import World
from pkb.nursery.server import NurseryServer
from pkb.platforms._gpu import Gpu
from pkb.problems.suite import load_problem
from pkb.protocol.messages import DrawInputs, Order, PinRanks, RunUntimed
from pkb.record import Pace, Verdict
from pkb.settings import JudgementSettings, ProblemSettings, Rigor
from pkb.speedup import compare_blocks
from pkb.tools.redteam import Attempt, stage
from pkb.trial import Trial

pytestmark = pytest.mark.clock

REDTEAM = Path(__file__).parents[3] / "redteam"
# Three blocks, whether a block has three calls or four.
RIGOR = Rigor("few", 2, 1.0, least_pairs=3, calls_per_block=4, most_pairs=3, checked_blocks=1)
WRONG = b"def solution(tensor):\n    return tensor.clone()\n"
LOOKS = """
import gc, sys, types
import torch, torch.distributed as dist

found = [o for o in gc.get_objects() if isinstance(o, types.FunctionType) and "pkb_problem" in str(o.__module__)]
names = sorted(f.__name__ for f in found)
assert "solution" not in names, names
kept = [o for o in gc.get_objects() if isinstance(o, torch.Tensor) and o.is_floating_point()]
assert not kept, [o.shape for o in kept]

def solution(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    let_processes_differ(monkeypatch)
    with Judge("cpu") as judge:
        yield judge


def spans(*us: float) -> list[list[list[float]]]:
    return [[[one]] for one in us]


def test_what_identical_code_shows_is_taken_out() -> None:
    ours, theirs = spans(11.0, 11.2, 11.1), spans(10.0, 10.1, 10.2)
    plain, _, pace = compare_blocks(ours, theirs, 0.0)
    assert (round(plain, 2), pace) == (1.1, Pace.FASTER)
    alike, (low, high), pace = compare_blocks(ours, theirs, 0.0, control=[1.1, 1.09, 1.11])
    assert (round(alike, 2), pace) == (1.0, Pace.TIE)
    assert low < 1 < high


def test_doubt_about_identical_code_is_doubt_about_the_candidate() -> None:
    ours, theirs = spans(*[11.0] * 9), spans(*[10.0] * 9)
    sure, unsure = [compare_blocks(ours, theirs, 0.0, control=c)[1] for c in ([1.0] * 9, [0.9, 1.0, 1.1] * 3)]
    assert sure[0] == sure[1]
    assert unsure[0] < sure[0] < unsure[1]


def test_the_record_has_it(judge: Judge) -> None:
    problem = load_problem("allreduce")
    record = judge.judge(
        judge.pose(problem, ProblemSettings(nproc=2, trials=1)),
        Candidate.reference(problem),
        JudgementSettings(rigor=RIGOR),
    )
    assert record.timing is not None, record.reason
    control = record.timing.control
    assert control is not None
    assert control.interval[0] <= control.ratio <= control.interval[1]
    assert len(control.blocks_us["candidate"]) == RIGOR.most_pairs
    pairs = zip(*(record.timing.blocks_us[side] for side in ("reference", "candidate")), strict=True)
    assert len(list(pairs)) == RIGOR.most_pairs


def test_a_process_that_is_slower_from_birth_makes_no_candidate_slower(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever runs in the candidate's ranks is told to take thirty times as long."""
    time = TimedWorld._time

    def stretched(self: TimedWorld, calls: int) -> None:
        time(self, calls)
        if self.name == "candidate":
            self.spans[-1] = [[30 * us for us in call] for call in self.spans[-1]]

    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    monkeypatch.setattr(TimedWorld, "_time", stretched)
    record = judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR))
    assert record.timing is not None, record.reason
    assert record.timing.control.ratio < 0.2
    assert record.timing.speedup > 0.2


def test_long_calls_need_none(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkb.judge.timing.aa_control._LONG_US", 0.0)
    problem = load_problem("allreduce")
    record = judge.judge(
        judge.pose(problem, ProblemSettings(nproc=1, trials=1)),
        Candidate.reference(problem),
        JudgementSettings(rigor=RIGOR),
    )
    assert record.timing is not None, record.reason
    assert record.timing.control is None


def test_calls_that_wait_for_the_device_have_none(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    let_hosts_be_ahead(monkeypatch, False)
    problem = load_problem("allreduce")
    record = judge.judge(
        judge.pose(problem, ProblemSettings(nproc=1, trials=1)),
        Candidate.reference(problem),
        JudgementSettings(rigor=RIGOR),
    )
    assert record.timing is not None, record.reason
    assert record.timing.control is None
    assert (
        Gpu().estimate_spread(100.0, waits=True)
        > Gpu().estimate_spread(100.0)
        > Gpu().estimate_spread(100.0, controlled=True)
    )


@pytest.mark.parametrize(
    ("alive", "cores", "pinned", "expected"),
    [
        ([0, 1], 8, True, {100: {5}, 101: {7}}),
        ([0, 1], 8, False, {100: {*range(8)}, 101: {*range(8)}}),
        ([1], 8, True, {101: {7}}),
        ([0, 1, 2], 4, True, {}),
        # Though there are enough for those that are left.
        ([0, 2], 4, True, {}),
        ([], 1, True, {}),
    ],
)
def test_a_rank_is_kept_to_the_core_of_its_like(
    monkeypatch: pytest.MonkeyPatch, alive: list[int], cores: int, pinned: bool, expected: dict[int, set[int]]
) -> None:
    kept: dict[int, set[int]] = {}
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {*range(cores)}, raising=False)
    monkeypatch.setattr("pkb.nursery.server.pin_process", lambda cores, pid: kept.update({pid: cores}))
    nursery = NurseryServer.__new__(NurseryServer)
    nursery.ranks = {100 + rank: (7, rank) for rank in alive} | {200: (8, 0)}
    nursery.pin(PinRanks(world=7, pinned=pinned, first=13))
    assert kept == expected


@pytest.mark.skipif(cores() < 2, reason="takes two cores of which one can be chosen")
def test_both_sides_are_timed_on_the_same_core(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[list[int]] = []
    loaded: list[list[int]] = []
    block, candidate_loaded = TimedWorld.time_block, Judge.load

    def pinned() -> list[int]:
        """The cores of processes that have only one."""
        affinities = [child.cpu_affinity() for child in psutil.Process(judge.nursery.process.pid).children(True)]
        return [own[0] for own in affinities if own and len(own) == 1]

    def spied(self: TimedWorld, trial: Trial) -> None:
        timed.append(pinned())
        block(self, trial)

    def spied_load(self: Judge, *rest: Any) -> Any:
        loaded.append(pinned())
        return candidate_loaded(self, *rest)

    monkeypatch.setattr(TimedWorld, "time_block", spied)
    monkeypatch.setattr(Judge, "load", spied_load)
    problem = load_problem("allreduce")
    assert judge.judge(
        judge.pose(problem, ProblemSettings(nproc=1, trials=1)),
        Candidate.reference(problem),
        JudgementSettings(rigor=RIGOR),
    ).correct
    assert {(len(cores), len(set(cores))) for cores in timed} == {(2, 1)}
    # A candidate may have all of them to compile itself.
    assert [len(cores) for cores in loaded] == [1]


def test_a_single_rank_whose_calls_cannot_be_short_needs_none(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Hardware("slow", "S0", 2, hbm_bytes_per_s=1e5, link_bytes_per_s=1e5, flops_per_s={"float32": 1e12})
    monkeypatch.setattr(judge.platform, "find_hardware", lambda: slow)
    alone, together = (judge.pose("allreduce", ProblemSettings(nproc=nproc, trials=1)) for nproc in (1, 2))
    assert not needs_control(alone, judge.platform)
    assert needs_control(together, judge.platform)
    # As slow as that it is not.
    monkeypatch.setattr(Hardware, "compute_floor", lambda *_: 0.0)
    monkeypatch.setattr(judge.platform, "has_slow_start", True)
    record = judge.judge(alone, Candidate.reference(load_problem("allreduce")), JudgementSettings(rigor=RIGOR))
    assert record.timing is not None, record.reason
    assert record.timing.control is None


def test_where_processes_are_equal_the_reference_waits_for_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    born: list[str] = []
    start = World.start

    def spied(self: World) -> None:
        if not self.started:
            born.append(self.blame)
        start(self)

    monkeypatch.setattr(World, "start", spied)
    problem = load_problem("allreduce")
    with Judge("cpu") as judge:
        record = judge.judge(
            judge.pose(problem, ProblemSettings(nproc=1, trials=1)), Candidate.of(WRONG), JudgementSettings(rigor=RIGOR)
        )
        assert record.verdict is Verdict.CORRECT, record.reason
        assert record.timing is not None
        assert record.timing.control is None
        assert born == [Verdict.ENVIRONMENT, Verdict.CRASH, Verdict.ENVIRONMENT]
        born.clear()
        record = judge.judge(
            judge.pose(problem, ProblemSettings(nproc=2, trials=1)), Candidate.of(WRONG), JudgementSettings(rigor=RIGOR)
        )
        assert record.verdict is Verdict.WRONG
        assert born == [Verdict.ENVIRONMENT, Verdict.CRASH]


def test_a_candidate_finds_nothing_of_it(judge: Judge) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.of(LOOKS.encode()), JudgementSettings(rigor=RIGOR, screen=False))
    assert record.verdict is Verdict.CORRECT, record.reason


def test_its_inputs_are_those_of_no_other_trial(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the candidate's ranks are concerned, in which the reference has been before."""
    before: set[int] = set()
    after: set[int] = set()
    send = World.send

    def spied(self: World, order: Any, *rest: Any) -> None:
        own = order if isinstance(order, Order) else order(0)
        if self.sandbox and isinstance(own, DrawInputs | RunUntimed):
            (before if self.blame is Verdict.ENVIRONMENT else after).update(call.seed for call in own.calls)
        send(self, order, *rest)

    monkeypatch.setattr(World, "send", spied)
    problem = load_problem("allreduce")
    assert judge.judge(
        judge.pose(problem, ProblemSettings(nproc=1, trials=1)),
        Candidate.reference(problem),
        JudgementSettings(rigor=RIGOR),
    ).correct
    assert before
    assert after
    assert not before & after


def test_when_it_fails_the_candidate_is_not_to_blame(judge: Judge, tmp_path: Path) -> None:
    """A problem whose solution dies in a sandbox, as one that needs what only references may see."""
    source = load_problem("allreduce").path.read_text()
    text = source.replace("def solution(", "def solution(*args):\n    raise OSError('not here')\n\n\ndef _unused(")
    assert text != source
    setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
    (tmp_path / "1_allreduce.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "copy_problem", lambda world, _: shutil.copy(tmp_path / "1_allreduce.py", world.folder))
        record = judge.judge(setup, Candidate.of(WRONG), JudgementSettings(rigor=RIGOR))
    assert (record.verdict, "OSError" in record.reason) == (Verdict.ENVIRONMENT, True)


def test_a_wrong_candidate_leaves_the_reference_ranks_well(judge: Judge) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    assert judge.judge(setup, Candidate.of(WRONG), JudgementSettings(rigor=RIGOR)).verdict is Verdict.WRONG
    assert judge.judge(setup, Candidate.reference(load_problem("allreduce")), JudgementSettings(rigor=RIGOR)).correct


def test_arguments_lie_elsewhere_in_each_block(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    padded: list[list[int]] = []
    pads = TimedWorld._choose_pads

    def spied(self: TimedWorld, trial: Trial) -> list[int]:
        padded.append(pads(self, trial))
        return padded[-1]

    monkeypatch.setattr(TimedWorld, "_choose_pads", spied)
    problem = load_problem("allreduce")
    assert judge.judge(
        judge.pose(problem, ProblemSettings(nproc=1, trials=1)),
        Candidate.reference(problem),
        JudgementSettings(rigor=RIGOR),
    ).correct
    # Both sides take the same, and each round another set; control and candidate alike.
    assert len(padded) == 4 * RIGOR.most_pairs
    assert sorted(map(str, padded[::2])) == sorted(map(str, padded[1::2]))
    assert len({str(one) for one in padded}) > RIGOR.most_pairs


@pytest.mark.parametrize(
    "name", ["02a_searches_objects", "02b_searches_frames", "33_reads_what_nobody_wrote", "38a_calls_the_reference"]
)
def test_what_it_leaves_is_of_no_use_to_who_searches_for_it(judge: Judge, name: str) -> None:
    attempt = replace(Attempt.read(REDTEAM / f"{name}.py"), timed=True)
    found = stage(judge, attempt, screened=not attempt.unscreened)
    assert found.is_caught, (found.outcome, found.reason)
