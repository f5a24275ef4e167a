"""pass@k, fast_p and speed-ups against hand-computed cases and brute force."""

import math
import statistics
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers.made_records import row
from pkb.analyse import Row, compute_fast_p_curve, compute_pass_at_k, is_fast, make_leaderboard, summarise_by_category
from pkb.analyse import estimates as e
from pkb.analyse.metrics import _compute_variance
from pkb.base.resampling import compute_weighted_medians, draw_counts

VERDICTS = ["CORRECT", "WRONG", "CRASH", "ENVIRONMENT"]
PROBLEMS = ["1_a", "2_b", "3_c"]
SPEEDS = st.one_of(st.none(), st.floats(0.1, 10.0))
ROWS = st.lists(st.builds(row, st.sampled_from(PROBLEMS), st.sampled_from(VERDICTS), SPEEDS), min_size=1, max_size=15)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (1, 1, 1, 1.0),
        (1, 0, 1, 0.0),
        (2, 1, 1, 0.5),
        (4, 1, 2, 0.5),
        (5, 2, 3, 0.9),
        (10, 3, 5, 11 / 12),
        (3, 3, 2, 1.0),
    ],
)
def test_pass_at_k_by_hand(n: int, c: int, k: int, expected: float) -> None:
    assert compute_pass_at_k(n, c, k) == pytest.approx(expected)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_pass_at_k_is_the_share_of_all_draws_that_hold_a_good_one(good: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(good)))
    draws = list(combinations(good, k))
    assert compute_pass_at_k(len(good), sum(good), k) == pytest.approx(sum(map(any, draws)) / len(draws))


def drawn(rows: list[Row], k: int, good: "st.SearchStrategy | object") -> float | None:
    """The mean over problems of the share of draws that hold a good one, by enumeration."""
    shares = []
    for problem in PROBLEMS:
        mine = [good(one) for one in rows if one.problem == problem and one.verdict != "ENVIRONMENT"]  # type: ignore[operator]
        if len(mine) >= k:
            draws = list(combinations(mine, k))
            shares.append(sum(map(any, draws)) / len(draws))
    return statistics.fmean(shares) if shares else None


@given(ROWS, st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.booleans())
def test_summaries_against_enumeration(rows: list[Row], k: int, p: float, plain: bool) -> None:
    found = summarise_by_category(rows, ks=(k,), p=p, plain=plain)[-1]
    passed, fast = found.pass_at[k], found.fast_at[k]
    assert (passed and passed.value) == pytest.approx(drawn(rows, k, lambda one: one.verdict == "CORRECT"))

    def quick(one: Row) -> bool:
        speed = one.speedup if plain else one.low
        return one.verdict == "CORRECT" and (p == 0 or (speed is not None and speed > p))

    if found.timed or p == 0:
        assert (fast and fast.value) == pytest.approx(drawn(rows, k, quick))
    else:
        assert fast is None
    speeds = [one.speedup for one in rows if one.verdict == "CORRECT" and one.speedup]
    assert found.timed == len(speeds)
    if speeds:
        assert found.geometric_mean
        assert found.geometric_mean.value == pytest.approx(statistics.geometric_mean(speeds))
        assert found.median
        assert found.median.value == pytest.approx(statistics.median(speeds))


@given(ROWS, st.lists(st.floats(0, 5), min_size=1, max_size=5), st.booleans())
def test_the_curve_is_fast_p_at_each_p(rows: list[Row], ps: list[float], plain: bool) -> None:
    expected = [drawn(rows, 1, lambda one, p=p: is_fast(one, p, plain)) for p in ps]
    assert compute_fast_p_curve(rows, ps, plain) == pytest.approx(expected)


@given(ROWS)
def test_environment_counts_neither_for_nor_against(rows: list[Row]) -> None:
    counted = [one for one in rows if one.verdict != "ENVIRONMENT"]
    every, without = summarise_by_category(rows)[-1], summarise_by_category(counted)[-1]
    assert every.left_out == len(rows) - len(counted)
    assert (every.samples, every.pass_at, every.fast_at) == (without.samples, without.pass_at, without.fast_at)


def test_fast_p_is_tested_on_the_low_end_unless_plain() -> None:
    near = row(speed=1.05)
    assert near.low == pytest.approx(0.945)
    assert not is_fast(near, 1.0)
    assert is_fast(near, 1.0, plain=True)
    assert not is_fast(row(verdict="WRONG", speed=3.0), 1.0)
    assert not is_fast(row(), 1.0)
    assert is_fast(row(), 0.0)


def test_a_problem_with_fewer_samples_than_k_is_left_out() -> None:
    rows = [row("1_a"), row("1_a", "WRONG"), row("1_a", "WRONG"), row("2_b")]
    found = summarise_by_category(rows, ks=(1, 3, 4))[-1]
    assert found.pass_at[1]
    assert (found.pass_at[1].value, found.pass_at[1].problems) == (pytest.approx((1 / 3 + 1) / 2), 2)
    assert found.pass_at[3]
    assert (found.pass_at[3].value, found.pass_at[3].problems) == (1.0, 1)
    assert found.pass_at[4] is None


def test_times_of_cpus_do_not_enter_the_leaderboard() -> None:
    rows = [row(problem, speed=3.0, platform="cpu", comparable=False) for problem in ("1_a", "2_b")]
    assert summarise_by_category(rows)[-1].timed == 2
    last = make_leaderboard(rows)[-1].summary
    assert (last.correct, last.timed, last.fast_at[1], last.median) == (2, 0, None, None)


@given(st.lists(st.floats(0, 1), min_size=5, max_size=5))
def test_the_interval_of_a_mean_is_that_of_all_resamples(values: list[float]) -> None:
    assume(set(values) not in ({0.0}, {1.0}))
    found = e.estimate_mean(values)
    assert found
    assert found.low is not None
    assert found.high is not None
    everything = np.array([statistics.fmean(draw) for draw in product(values, repeat=len(values))])
    below, above = (everything < found.low - 1e-9).mean(), (everything > found.high + 1e-9).mean()
    # 2000 resamples, not all of them: the ends lie between the 1 and 4.5 % quantiles of all.
    assert max(below, above) < 0.045
    assert (everything <= found.low + 1e-9).mean() > 0.01
    assert (everything >= found.high - 1e-9).mean() > 0.01


@given(st.lists(st.lists(st.floats(0.1, 10), min_size=1, max_size=4), min_size=1, max_size=5))
def test_medians_of_resamples_are_those_of_the_repeated_values(groups: list[list[float]]) -> None:
    pooled = np.concatenate(groups)
    owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    order = np.argsort(pooled)
    counts = draw_counts(len(groups))[:20]
    found = compute_weighted_medians(pooled[order], counts[:, owner[order]])
    expected = [np.median(np.repeat(pooled, draw[owner])) for draw in counts]
    assert found == pytest.approx(np.array(expected))


def test_intervals_hold_the_value_and_narrow_with_problems() -> None:
    def width(problems: int) -> float:
        rows = [row(f"{n}_p", "CORRECT" if n % 2 else "WRONG", speed=1 + n % 5 / 10) for n in range(problems)]
        last = summarise_by_category(rows)[-1]
        for found in (last.pass_at[1], last.geometric_mean, last.median):
            assert found
            assert found.interval
            assert found.interval[0] <= found.value <= found.interval[1]
        assert last.pass_at[1]
        assert last.pass_at[1].interval
        return last.pass_at[1].interval[1] - last.pass_at[1].interval[0]

    assert width(100) < width(20) < 1
    assert width(100) == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 100), rel=0.15)


@pytest.mark.parametrize(("value", "bound"), [(1.0, 5 / (5 + 1.96**2)), (0.0, 1.96**2 / (5 + 1.96**2))])
def test_where_all_agree_there_is_doubt_left(value: float, bound: float) -> None:
    found = e.estimate_mean([value] * 5)
    assert found
    assert found.value == value
    assert (found.low, found.high) == pytest.approx(sorted((value, bound)), rel=1e-4)


@pytest.mark.parametrize("problems", range(1, 5))
def test_few_problems_have_no_interval(problems: int) -> None:
    rows = [row(f"{n}_p", verdict, speed=2.0) for n in range(problems) for verdict in ("CORRECT", "WRONG")]
    last = summarise_by_category(rows, ks=(1, 2))[-1]
    figures = [*last.pass_at.values(), *last.fast_at.values(), last.geometric_mean, last.median]
    assert [found.interval for found in figures if found] == [None] * 6


def test_samples_are_drawn_again_too() -> None:
    """Each problem has one right sample of two: no resample of problems alone would ever be off one half."""
    rows = [row(f"{n}_p", verdict) for n in range(50) for verdict in ("CORRECT", "WRONG")]
    found = summarise_by_category(rows, ks=(1,))[-1].pass_at[1]
    assert found
    assert found.interval
    # The mean of 50 shares that are 0, 1/2 or 1 with the chances 1/4, 1/2, 1/4.
    half = 1.96 * math.sqrt(1 / 8 / 50)
    assert found.interval == pytest.approx((0.5 - half, 0.5 + half), abs=0.015)


@pytest.mark.parametrize(
    ("n", "good", "k"), [(2, 1, 1), (5, 2, 3), (10, 9, 1), (100, 30, 3), (101, 30, 3), (100_000, 7, 1)]
)
def test_the_variance_of_a_share_is_that_of_samples_drawn_again(n: int, good: int, k: int) -> None:
    found = _compute_variance(n, good, k)
    draws = np.random.default_rng(3).binomial(n, good / n, 4000)
    again = {int(count): compute_pass_at_k(n, int(count), k) for count in set(draws)}
    assert found == pytest.approx(np.var([again[int(count)] for count in draws]), rel=0.15)
    assert _compute_variance(n, 0, k) == _compute_variance(n, n, k) == 0
