"""pass@k, fast_p@k and fast_p by turn. A verdict of ENVIRONMENT is never counted."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, fsum, inf
from statistics import fmean

from pkb.analyse.estimates import Estimate, estimate_mean
from pkb.row import Row

_UNTIMED = 5e-324
"""The smallest number above 0."""
_MANY = 100
"""The number of samples of a problem from which the variance of its share is approximated."""


def compute_pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that k of n samples, drawn without replacement, hold one of the c good ones; needs k <= n."""
    return 1 - comb(n - c, k) / comb(n, k)


def is_fast(row: Row, p: float, plain: bool = False) -> bool:
    """Return whether a sample is right and more than p times as fast as the reference.

    The low end of the speed-up's interval decides, or with `plain` the speed-up itself. A sample that is right but was
    not timed is faster than 0 only.
    """
    return _find_speed(row, plain) > p


def _find_speed(row: Row, plain: bool) -> float:
    """Return the number that must be above p for the sample to be fast."""
    speed = row.speedup if plain else row.low
    return (speed or _UNTIMED) if row.correct else -inf


@dataclass(slots=True)
class Tally:
    """The number of a problem's samples, and of the good ones among them."""

    n: int = 0
    good: int = 0


def count_correct(rows: Iterable[Row]) -> dict[str, Tally]:
    """Return how many samples of each problem are right."""
    return _count((row, row.correct) for row in rows)


def count_fast(rows: Iterable[Row], p: float, plain: bool = False) -> dict[str, Tally]:
    """Return how many samples of each problem are fast."""
    return _count((row, is_fast(row, p, plain)) for row in rows)


def estimate_at_k(tallies: dict[str, Tally], k: int) -> Estimate | None:
    """Return the mean of pass@k over problems that have k samples or more; None where none has."""
    kept = [tally for tally in tallies.values() if tally.n >= k]
    values = [compute_pass_at_k(tally.n, tally.good, k) for tally in kept]
    return estimate_mean(values, [_compute_variance(tally.n, tally.good, k) for tally in kept])


@cache
def _compute_variance(n: int, good: int, k: int) -> float:
    """Return the variance of pass@k if the n samples were drawn again, with replacement."""
    p = good / n
    if n > _MANY:
        # By the slope of 1 - (1 - p) ** k: of many samples, p scatters little.
        return p * (1 - p) / n * (k * (1 - p) ** (k - 1)) ** 2
    chances = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    values = [compute_pass_at_k(n, c, k) for c in range(n + 1)]
    mean = fsum(chance * value for chance, value in zip(chances, values, strict=True))
    return fsum(chance * (value - mean) ** 2 for chance, value in zip(chances, values, strict=True))


def compute_fast_p_curve(rows: Iterable[Row], ps: Sequence[float], plain: bool = False) -> list[float | None]:
    """Return fast_p at each p: the mean over problems of the share of fast samples; None without samples."""
    speeds: dict[str, list[float]] = {}
    for row in rows:
        if row.counts:
            speeds.setdefault(row.problem, []).append(_find_speed(row, plain))
    ordered = [sorted(found) for found in speeds.values()]
    return [fmean(1 - bisect_right(found, p) / len(found) for found in ordered) if ordered else None for p in ps]


def estimate_fast_p_by_turn(samples: Iterable[Sequence[Row]], p: float) -> list[Estimate | None]:
    """Return fast_p after each turn, from the rows of each sample's turns.

    It is the mean over problems of the share of samples that were fast in this turn or an earlier one. A sample that
    has ended stays what it was.
    """
    found = [list(filter(lambda row: row.counts, turns)) for turns in samples]
    numbers = {row.turn for turns in found for row in turns}
    estimates: list[Estimate | None] = []
    for turn in range(1, max(numbers, default=0) + 1):
        # In a turn without any record, nothing has changed.
        same = estimates and turn not in numbers
        estimates.append(estimates[-1] if same else _estimate_after_turn(found, p, turn))
    return estimates


def _estimate_after_turn(samples: Iterable[Sequence[Row]], p: float, turn: int) -> Estimate | None:
    until = ([row for row in turns if row.turn <= turn] for turns in samples)
    return estimate_at_k(_count((turns[0], any(is_fast(row, p) for row in turns)) for turns in until if turns), 1)


def _count(outcomes: Iterable[tuple[Row, bool]]) -> dict[str, Tally]:
    found: dict[str, Tally] = {}
    for row, good in outcomes:
        if row.counts:
            tally = found.setdefault(row.problem, Tally())
            tally.n += 1
            tally.good += good
    return found
