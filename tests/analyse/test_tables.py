"""The leaderboard, failures and comparisons, by hand."""

from pathlib import Path

import pytest

from helpers.made_records import record, row, timed_record
from pkb.analyse import (
    ALL,
    Change,
    compare_runs,
    compute_fast_p_curve,
    count_failures,
    list_timed_rows,
    make_leaderboard,
    read_rows,
)
from pkb.record import Evidence, SetupFacts
from pkb.runs import Run, save_record


def test_the_leaderboard_by_hand() -> None:
    ours = [
        row("1_a", speed=2.0, run="ours", model="big"),
        row("1_a", "WRONG", run="ours", model="big"),
        row("1_a", "CRASH", run="ours", model="big"),
        row("2_b", speed=0.5, run="ours", model="big", category="B"),
        row("2_b", speed=8.0, run="ours", model="big", category="B"),
        row("2_b", "ENVIRONMENT", run="ours", model="big", category="B"),
    ]
    theirs = [row("1_a", run="theirs", model="small", backend="cuda"), row("2_b", run="theirs", model="small")]
    found = make_leaderboard(ours + theirs)
    assert [(one.run, one.model, one.backend, one.summary.category) for one in found] == [
        ("ours", "big", "triton", "A"),
        ("ours", "big", "triton", "B"),
        ("ours", "big", "triton", ALL),
        ("theirs", "small", "cuda+triton", "A"),
        ("theirs", "small", "cuda+triton", ALL),
    ]
    a, b, everything = (one.summary for one in found[:3])
    assert a.pass_at[1]
    assert a.pass_at[1].value == pytest.approx(1 / 3)
    assert a.pass_at[3]
    assert a.pass_at[3].value == 1.0
    assert b.pass_at[3] is None
    assert b.fast_at[1]
    assert b.fast_at[1].value == 0.5
    assert (b.samples, b.left_out, b.correct, b.timed) == (2, 1, 2, 2)
    assert everything.fast_at[1]
    assert everything.fast_at[1].value == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert everything.geometric_mean
    assert everything.geometric_mean.value == pytest.approx(2.0)
    assert everything.median
    assert everything.median.value == pytest.approx(2.0)
    assert found[4].summary.fast_at[1] is None


def test_failures_are_counted_by_verdict_and_check() -> None:
    found = count_failures(
        [row(), row()]
        + [row(verdict="WRONG", check=check) for check in ("values", "values", "shape")]
        + [row(verdict="ENVIRONMENT", check="nursery") for _ in range(5)]
        + [row(verdict="CRASH")]
    )
    assert [(one.verdict, one.count, one.share, one.checks) for one in found] == [
        ("WRONG", 3, 3 / 6, {"values": 2, "shape": 1}),
        ("CRASH", 1, 1 / 6, {"": 1}),
        ("ENVIRONMENT", 5, None, {"nursery": 5}),
    ]


def test_degenerate_problems_enter_no_figure() -> None:
    flawed = {"degenerate": "always zero", "category": "level2"}
    ours = [
        row("L1_19_ReLU", speed=2.0, category="level1"),
        row("L1_100_HingeLoss", "WRONG", category="level1"),
        row("L2_80_Gemm", speed=64.0, **flawed),
        row("L2_80_Gemm", "CRASH", **flawed),
        row("L2_81_Gemm", "ENVIRONMENT", category="level2"),
    ]
    level1, level2, everything = (one.summary for one in make_leaderboard(ours))
    assert (level1.category, level2.category, everything.category) == ("level1", "level2", ALL)
    assert (level2.problems, level2.samples, level2.left_out, level2.degenerate) == (0, 0, 1, 2)
    assert (everything.problems, everything.samples, everything.correct, everything.timed) == (2, 2, 1, 1)
    assert everything.pass_at[1]
    assert everything.fast_at[1]
    assert everything.geometric_mean
    assert (everything.pass_at[1].value, everything.fast_at[1].value) == (0.5, 0.5)
    assert everything.geometric_mean.value == pytest.approx(2.0)
    assert compute_fast_p_curve(ours, [1.0]) == [0.5]
    assert [one.verdict for one in count_failures(ours)] == ["WRONG", "ENVIRONMENT"]
    assert [one.problem for one in compare_runs(ours, ours)] == ["L1_19_ReLU", "L1_100_HingeLoss"]


def test_published_inputs_make_a_run_of_their_own(tmp_path: Path) -> None:
    run = Run(tmp_path / "mine")
    for inputs in ("sound", "published"):
        setup = SetupFacts("float32", 1, trials=5, calls=3, size="tiny", inputs=inputs, state="by name")
        save_record(run.create_sample("L1_19_ReLU", inputs), timed_record(problem="L1_19_ReLU", setup=setup))
    published, sound = read_rows([tmp_path / "mine"]).rows
    assert (sound.run, sound.model, sound.size, sound.m) == ("mine", "mine", "tiny", 0)
    assert published.run == published.model == "mine (published inputs)"
    assert [(one.run, one.inputs) for one in make_leaderboard([sound, published]) if one.summary.category == ALL] == [
        ("mine", "sound"),
        ("mine (published inputs)", "published"),
    ]
    (found,) = compare_runs([sound], [published])
    assert (found.ratio, found.other_settings) == (None, ["inputs sound / published"])


def test_speedups_are_of_what_is_right_and_timed() -> None:
    found = list_timed_rows([row(speed=1.0), row(speed=3.0), row(), row(verdict="CHEAT", speed=9.0), row(speed=2.0)])
    assert [one.speedup for one in found] == [3.0, 2.0, 1.0]


def test_two_runs_compared() -> None:
    before = [
        row("1_a", speed=1.0),
        row("2_b", speed=1.0),
        row("3_c", speed=1.0),
        row("4_d", "WRONG"),
        row("4_d", "CRASH"),
        row("5_e"),
        row("6_f", "WRONG"),
        row("7_g"),
        row("9_i", "ENVIRONMENT"),
    ]
    after = [
        row("1_a", speed=1.1),
        row("2_b", speed=0.5),
        row("2_b", speed=1.3),
        row("3_c", speed=0.7),
        row("3_c", "WRONG", speed=5.0),
        row("4_d", "WRONG"),
        row("4_d"),
        row("5_e", "HANG"),
        row("6_f", "CRASH"),
        row("8_h"),
        row("9_i", "ENVIRONMENT"),
    ]
    found = compare_runs(before, after)
    assert {one.number: one.change for one in found} == {
        1: Change.NOISE,
        2: Change.BETTER,
        3: Change.WORSE,
        4: Change.BETTER,
        5: Change.WORSE,
        6: Change.SAME,
        7: Change.GONE,
        8: Change.NEW,
    }
    assert [one.number for one in found] == list(range(1, 9))
    assert found[1].ratio == pytest.approx(1.3)


def test_rows_hold_what_the_record_says(tmp_path: Path) -> None:
    run = Run(tmp_path / "mine")
    run.update_facts(model="big", backend="triton")
    save_record(run.create_sample("1_allreduce"), timed_record())
    save_record(
        run.create_sample("1_allreduce"),
        record(verdict="WRONG", evidence=Evidence("values", details={"blocks_us": [1]})),
    )
    run.create_sample("1_allreduce")
    found = read_rows([tmp_path / "mine"])
    assert not found.damaged
    timed, wrong = found.rows
    assert (timed.run, timed.model, timed.backend, timed.sample) == ("mine", "big", "triton", "1")
    assert (timed.problem, timed.number, timed.category) == ("1_allreduce", 1, "Collective Primitive")
    assert (timed.speedup, timed.low, timed.high, timed.pace) == (2.0, 1.8, 2.2, "FASTER")
    assert (timed.reference_us, timed.candidate_us, timed.roofline_us, timed.percent) == (100.0, 50.0, 5.0, 10.0)
    assert (timed.platform, timed.world, timed.dtype, timed.m, timed.n) == ("gpus", 4, "float32", 16, 8)
    assert timed.folder == str(tmp_path / "mine" / "1_allreduce" / "1")
    assert (wrong.verdict, wrong.check, wrong.reason, wrong.speedup) == ("WRONG", "values", "as made", None)


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for place in ("a", "b"):
        save_record(Run(tmp_path / place / "same").create_sample("1_allreduce"), record())
    found = read_rows([tmp_path / "a" / "same", tmp_path / "b" / "same"]).rows
    assert [one.run for one in found] == [str(tmp_path / "a" / "same"), str(tmp_path / "b" / "same")]
