"""Timing end to end on CPU, with candidates that are other than they seem while they are timed."""

from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.failure import Failure
from pkb.hardware.roofline import Hardware
from pkb.judge.correctness.orders import draw_inputs
from pkb.judge.correctness.results import run_calls
from pkb.judge.judge import Judge
from pkb.judge.setup.seeds import Seeds
from pkb.judge.timing.blocks import BlockPlan, TimedWorld, run_rounds
from pkb.judge.timing.judge_clock import (
    ClockRun,
    Span,
    choose_calls,
    describe_false_claim,
    is_borne_out,
    is_overwhelming,
    list_trials,
    vary_calls,
)
from pkb.judge.worlds.world import World
from pkb.problems.cost import Cost, Link
from pkb.problems.suite import Suite, list_problems, load_problem
from pkb.protocol.messages import LoadSolution
from pkb.record import Pace, Record, Verdict
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings, Rigor, find_rigor
from pkb.speedup import (
    Timing,
    bootstrap_median,
    compare_blocks,
    compare_separate_blocks,
    compute_block_times,
    compute_skew,
    is_narrow,
    is_steady,
)
from pkb.trial import Trial, TrialKind

pytestmark = pytest.mark.clock

QUICK = RIGORS["quick"]
KEEPS = """
import weakref
results = []
def solution(tensor):
    out = tensor.clone()
    results.append(weakref.ref(out))
    return out
"""
LOOKS = """
import sys
left = [result for result in sys.modules["keeps"].results if result() is not None]
assert not left, f"{len(left)} are still there"
def solution(tensor):
    return tensor
"""
CLOCK = "from pkb.platforms import HostClock\n"
SLOW_CLOCK = (
    CLOCK
    + """
import sys
class Bent(HostClock):
    def measure_ns(self, start, end):
        return max(1, (end - start) // 1000)
def bend_clock():
    # Two frames up, as this is called by the solution; patched functions would be found for themselves.
    found = sys._getframe(2).f_locals.get("self")
    if hasattr(found, "clock"):
        found.clock = Bent()
"""
)
HEAD = """
import time
import torch.distributed as dist

calls = 0

def honest(tensor):
    out = tensor.clone()
    dist.all_reduce(out)
    return out

def solution(tensor):
    global calls
    calls += 1
    {body}
"""


def judged(judge: Judge, body: str) -> Record:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=2))
    return judge.judge(setup, Candidate.of(HEAD.format(body=body).encode()), JudgementSettings(rigor=QUICK))


def test_a_record_says_how_it_was_timed(judge: Judge) -> None:
    record = judged(judge, "return honest(tensor)")
    assert record.verdict is Verdict.CORRECT, record.reason
    timing = record.timing
    assert timing is not None
    low, high = timing.interval
    assert 0 < low <= timing.speedup <= high
    blocks = timing.blocks_us
    runs = len(list_trials(timing.candidate_us, attempt=0))
    assert timing.checked_calls >= min(QUICK.checked_blocks, len(blocks["candidate"])) + runs
    warmed = {*timing.warm_up_calls.values()}
    assert len(warmed) == 1
    assert QUICK.warm_up <= warmed.pop() <= 1.5 * QUICK.warm_up
    assert 0.75 * QUICK.calls_per_block <= timing.calls_per_block <= QUICK.calls_per_block
    assert len(blocks["reference"]) == len(blocks["candidate"]) >= QUICK.least_pairs
    assert {len(call) for side in blocks.values() for block in side for call in block} == {2}
    assert Record.from_json(record.to_json()) == record


def test_right_in_the_trials_and_wrong_when_timed(judge: Judge) -> None:
    record = judged(judge, "return honest(tensor) if calls < 20 else tensor.clone()")
    assert (record.verdict, record.evidence.check) == (Verdict.WRONG, "timed-values")
    assert "timed block" in record.reason


def test_a_result_kept_from_an_earlier_timed_call(judge: Judge) -> None:
    body = "global kept; kept = honest(tensor) if calls < 20 else kept; return kept.clone()"
    record = judged(judge, body)
    assert (record.verdict, record.evidence.check) == (Verdict.WRONG, "timed-values")


@pytest.mark.parametrize("hidden_s", [0.02, 0.06])
def test_a_bent_clock_is_a_cheat(judge: Judge, hidden_s: float) -> None:
    body = f"bend_clock(); time.sleep({hidden_s}); return honest(tensor)"
    source = HEAD.replace("calls = 0", SLOW_CLOCK + "calls = 0").format(body=body)
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.of(source.encode()), JudgementSettings(rigor=QUICK, screen=False))
    assert (record.verdict, record.evidence.check) == (Verdict.CHEAT, "outside-clock"), record.reason


def test_a_stopped_clock_breaks_the_protocol(judge: Judge) -> None:
    stopped = SLOW_CLOCK.replace("max(1, (end - start) // 1000)", "0")
    source = HEAD.replace("calls = 0", stopped + "calls = 0").format(body="bend_clock(); return honest(tensor)")
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.of(source.encode()), JudgementSettings(rigor=QUICK, screen=False))
    assert (record.verdict, record.evidence.check) == (Verdict.CRASH, "protocol"), record.reason


IN_PLACE = [p.stem for p in list_problems() if p.mutates]


@pytest.mark.parametrize("stem", IN_PLACE)
def test_arguments_changed_in_place_are_fresh_in_every_timed_call(judge: Judge, stem: str) -> None:
    problem = load_problem(stem)
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=QUICK))
    assert record.verdict is Verdict.CORRECT, record.reason
    assert record.timing


def test_compiled_baselines_take_turns_too(judge: Judge) -> None:
    problem = load_problem("tp_rms_norm")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    record = judge.judge(
        setup, Candidate.reference(problem), JudgementSettings(rigor=QUICK, baselines=["compile-default"])
    )
    assert record.timing
    found = record.timing.baselines["compile-default"]
    assert found.us, found
    assert len(found.blocks_us) == len(record.timing.blocks_us["candidate"])


def test_a_baseline_that_cannot_be_compiled_is_told_and_left_out(judge: Judge, tmp_path: Path) -> None:
    source = load_problem("allreduce").path.read_text()
    refusal = 'import sys; assert "torch._inductor.compile_fx" not in sys.modules, "not this one"'
    changed = source.replace("    dist.all_reduce", f"    {refusal}\n    dist.all_reduce", 1)
    (tmp_path / "1_allreduce.py").write_text(changed)
    (problem,) = Suite(tmp_path).select("all")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    record = judge.judge(
        setup,
        Candidate.reference(load_problem("allreduce")),
        JudgementSettings(rigor=QUICK, baselines=["compile-default"]),
    )
    assert record.verdict is Verdict.CORRECT, record.reason
    assert record.timing
    assert "not this one" in record.timing.baselines["compile-default"].failed


def test_results_are_let_go_before_others_need_the_memory(judge: Judge, tmp_path: Path) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
    (tmp_path / "keeps.py").write_text(KEEPS)
    (tmp_path / "looks.py").write_text(LOOKS)
    problem = str(setup.problem.path)
    keeps, looks = (LoadSolution(problem, str(tmp_path / name)) for name in ("keeps.py", "looks.py"))
    with World(judge.nursery, 1, judge.limits) as world:
        world.start()
        world.ask(keeps, "load", 30)
        draw_inputs(world, setup, judge.seeds, Trial(TrialKind.CHECK))
        run_calls(world, setup, "trial")
        with pytest.raises(Failure, match="are still there"):
            world.ask(looks, "load", 30)
        world.release_memory()
        world.ask(looks, "load", 30)


def test_names_of_rigors_are_checked() -> None:
    assert find_rigor("paper").warm_up == 500
    with pytest.raises(UsageError, match="quick, paper"):
        find_rigor("sloppy")


def spans(*medians: float) -> list[list[list[float]]]:
    """Blocks of three calls on two ranks, the slower rank taking what is given."""
    return [[[m, m - 1], [m, m - 1], [9 * m, 0.5]] for m in medians]


def test_the_slowest_rank_the_middle_calls_and_paired_blocks_count() -> None:
    assert compute_block_times([[[1.0, 90.0], [2.0, 10.0], [12.0, 3.0], [0.1, 0.2]], [[5.0], [6.0]]]) == [11.0, 5.5]
    speedup, (low, high), pace = compare_blocks(spans(20, 40, 60, 80), spans(10, 20, 30, 40), spread=0.0)
    assert (speedup, low, high, pace) == (2.0, 2.0, 2.0, Pace.FASTER)
    assert compute_skew(spans(20)) == 1


def test_blocks_that_did_not_take_turns_leave_more_doubt() -> None:
    ours, theirs = spans(18, 20, 22, 26), spans(9, 10, 11, 13)
    assert compare_blocks(ours, theirs, spread=0.0)[1] == (2.0, 2.0)
    assert compare_blocks(ours, theirs, spread=0.25)[1] == (1.6, 2.5)
    speedup, (low, high), pace = compare_separate_blocks(ours, theirs, drift=1.0, spread=0.0)
    assert (speedup, pace) == (2.0, Pace.FASTER)
    assert 1.3 < low < 1.9
    assert 2.1 < high < 3.0
    # The machine is a tenth slower today: so would the stored side be.
    assert compare_separate_blocks(ours, theirs, drift=1.1, spread=0.0)[1] == (low, pytest.approx(1.1 * high))
    assert compare_separate_blocks(ours, theirs, drift=0.9, spread=0.0)[1] == (pytest.approx(0.9 * low), high)


def test_a_side_is_steady_when_its_own_blocks_agree() -> None:
    assert is_steady(spans(*[10.0] * 8))
    assert not is_steady(spans(9, 10, 11, 9, 10, 11))


@pytest.mark.parametrize(
    ("ratio", "pace"), [(1.019, Pace.TIE), (1.03, Pace.FASTER), (0.985, Pace.TIE), (0.97, Pace.SLOWER)]
)
def test_the_margin_around_one(ratio: float, pace: Pace) -> None:
    assert compare_blocks(spans(*[100 * ratio] * 8), spans(*[100.0] * 8), spread=0.0)[2] is pace


def test_an_interval_is_as_wide_as_its_blocks_disagree() -> None:
    low, high = bootstrap_median([0.9, 1.0, 1.1] * 5)
    assert 0.9 <= low < 1.0 < high <= 1.1
    assert is_narrow(spans(*[10.0] * 8), spans(*[10.0] * 8))
    assert not is_narrow(spans(9, 10, 11, 9, 10, 11), spans(*[10.0] * 6))


def test_caches_are_flushed_where_there_are_any_unless_asked_not_to() -> None:
    assert BlockPlan(calls=10, room=1, cache_bytes=100, warm=False).flush
    assert not BlockPlan(10, 1, cache_bytes=100, warm=True).flush
    assert BlockPlan(10, 1, cache_bytes=0, warm=False).cache == "not looked after"


@pytest.mark.parametrize(("theirs", "waits"), [(1.0, False), (0.9, False), (0.1, True)])
def test_who_is_seldom_queued_waits_for_the_device(theirs: float, waits: bool) -> None:
    timing = Timing(**{field.name: None for field in fields(Timing)})  # type: ignore[arg-type]
    assert replace(timing, queued={"reference": 1.0, "candidate": theirs}).waits == waits


def test_the_outside_clock_allows_for_noise_and_harness() -> None:
    seen, harness = Span(us=130, noise_us=2), Span(us=20, noise_us=1)
    assert is_borne_out(60, seen, harness, slack_us=10)
    assert not is_borne_out(55, seen, harness, slack_us=10)
    # However much a candidate varies, no more is allowed for than half of its claim, or of the harness's time.
    assert not is_borne_out(40, Span(us=130, noise_us=1000), harness, slack_us=10)
    assert "judge's says 110" in describe_false_claim(60, seen, harness).reason
    assert [len(list_trials(us, attempt=1)) for us in (999.0, 1000.0)] == [6, 3]
    assert not {*list_trials(1.0, attempt=0)} & {*list_trials(1.0, attempt=1)}


def clock_run(us_per_call: float, calls: int = 8) -> ClockRun:
    return ClockRun(Trial(TrialKind.CLOCK), calls, us_per_call * calls, key=1, digests=[])


def test_the_first_run_under_the_judges_clock_is_short_and_a_bent_clock_costs_few_calls() -> None:
    alike = [clock_run(5000)], [clock_run(5000)]
    bent = [clock_run(5000)], [clock_run(45_000)]
    assert [choose_calls(us, 1000, [], []) for us in (1.0, 100.0, 1e6)] == [8, 8, 2]
    assert [choose_calls(us, 1000, *alike) for us in (1.0, 100.0, 1e6)] == [64, 20, 2]
    assert [choose_calls(1.0, room, *alike) for room in (40, 4, 1)] == [40, 4, 1]
    assert [choose_calls(us, 1000, *bent) for us in (1.0, 100.0)] == [2, 2]


def test_a_typical_run_counts_not_the_shortest() -> None:
    lazy_in_one = [clock_run(us) for us in (30_000, 100, 30_200, 29_900, 30_100, 30_000)]
    assert Span.of(lazy_in_one) == Span(us=30_000, noise_us=100)


def test_only_what_is_overwhelming_ends_it_early() -> None:
    harness = Span(us=1000, noise_us=100)
    endless, long, short = clock_run(2_000_000, calls=2), clock_run(200_000, calls=2), clock_run(1100, calls=2)
    assert [is_overwhelming(100, harness, 5000, [endless] * count) for count in (1, 2)] == [False, True]
    assert [is_overwhelming(100, harness, 5000, [long] * count) for count in (2, 3)] == [False, True]
    assert not is_overwhelming(100, harness, 5000, [endless, endless, short])


def test_the_number_of_calls_cannot_be_foreseen() -> None:
    trials = [Trial(TrialKind.CLOCK, index) for index in range(100)]
    assert {vary_calls(8, Seeds(), trial) for trial in trials} == {6, 7, 8}
    assert {vary_calls(count, Seeds(), trials[0]) for count in (1, 2)} == {1, 2}


@pytest.mark.parametrize(("opinions", "verdict"), [([False, True], "CORRECT"), ([False] * 3, "CHEAT")])
def test_nobody_is_accused_before_the_judge_has_looked_again(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, opinions: list[bool], verdict: str
) -> None:
    coming = iter(opinions)
    monkeypatch.setattr("pkb.judge.timing.clock_check.is_borne_out", lambda *_: next(coming))
    record = judged(judge, "return honest(tensor)")
    assert record.verdict == verdict, record.reason
    assert next(coming, None) is None
    if record.timing:
        # Of each run some results were asked for, and were right.
        blocks = min(QUICK.checked_blocks, len(record.timing.blocks_us["candidate"]))
        runs = [len(list_trials(us, attempt=0)) for us in (1.0, 1e6)]
        assert record.timing.checked_calls >= blocks + len(opinions) * runs[1]


class Scripted(TimedWorld):
    """Blocks whose host stays ahead, or not, as it is told."""

    def __init__(self, name: str, ahead: list[bool], voids: int):
        self.name, self.plan, self.world = name, BlockPlan(1, 1, 0, False), SimpleNamespace(size=1)  # type: ignore[assignment]
        self.script, self.voids = iter(ahead), voids
        self.host_s, self.spin_s, self.warm_us = 1e-3, 1e-3, 10.0
        self.spans, self.queued = [], []

    def time_block(self, trial: Trial) -> None:
        self.spans.append([[float(trial.index)]])
        self.queued.append(next(self.script))
        self.last_host_s = 1e-3 if self.queued[-1] else 5e-3


def test_a_round_in_which_a_host_fell_behind_is_left_out_and_its_lead_grows() -> None:
    rigor = Rigor("few", 0, 0.0, least_pairs=3, calls_per_block=1, most_pairs=3, checked_blocks=0)
    ours, theirs = Scripted("reference", [True] * 9, 2), Scripted("candidate", [True, False, True, True], 2)
    assert [trial.index for trial in run_rounds([ours, theirs], rigor, lambda: False)] == [1, 2, 3, 4]
    assert ours.spans == theirs.spans == [[[1.0]], [[3.0]], [[4.0]]]
    assert (ours.spin_s, theirs.spin_s) == (1e-3, pytest.approx(1.03e-2))


def test_rounds_are_left_out_only_a_few_times() -> None:
    """Whoever says that its host is slow would otherwise choose among its blocks."""
    rigor = Rigor("few", 0, 0.0, least_pairs=3, calls_per_block=1, most_pairs=3, checked_blocks=0)
    ours, theirs = Scripted("reference", [True] * 9, 2), Scripted("candidate", [False] * 9, 2)
    assert len(list(run_rounds([ours, theirs], rigor, lambda: False))) == 5
    assert len(ours.spans) == len(theirs.spans) == 3


def test_the_speed_of_light_by_hand() -> None:
    hardware = Hardware("ours", "H0", 2, hbm_bytes_per_s=1e12, link_bytes_per_s=1e11, flops_per_s={"bfloat16": 1e14})
    cost = Cost(flops=1e8, hbm=5e6, link=Link(egress=1e6, ingress=2e6))
    assert hardware.compute_speed_of_light([cost, cost], "bfloat16") == pytest.approx(2e-5)
    # On one GPU the work of both ranks shares one memory, and the link is that memory.
    assert hardware.compute_speed_of_light([cost, cost], "bfloat16", shared=True) == pytest.approx(1e-5)
    assert hardware.compute_floor([cost, cost], shared=True, cache_bytes=4_000_000) == pytest.approx(6e-6)
    assert hardware.compute_floor([cost, cost], shared=True, cache_bytes=1 << 30) == pytest.approx(1e-6)
    assert hardware.compute_floor([cost, cost], shared=False, cache_bytes=1 << 30) == pytest.approx(2e-5)


def test_a_gpu_is_known_by_a_word_of_its_name() -> None:
    found = Hardware.find_by_gpu("NVIDIA H200")
    assert found
    assert found.hbm_bytes_per_s == 4.8e12
    assert Hardware.find_by_gpu("NVIDIA GeForce 256") is None
