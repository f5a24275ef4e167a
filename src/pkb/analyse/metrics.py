"""pass@k, fast_p@k and fast_p@turn. A verdict of ENVIRONMENT is never counted."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, inf
from statistics import fmean

from pkb.analyse import bootstrap as estimate
from pkb.analyse.bootstrap import Estimate
from pkb.analyse.rows import Row

_UNTIMED = 5e-324
"""The smallest number above 0."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that k samples drawn from n without putting back hold one of the c good ones; needs k <= n."""
    return 1 - comb(n - c, k) / comb(n, k)


def is_fast(row: Row, p: float, plain: bool = False) -> bool:
    """Right, and more than p times as fast as the reference: surely, by the interval's low end; or `plain`, by its best
    guess. What is right but was not timed is faster than 0 only."""
    return _speed(row, plain) > p


def _speed(row: Row, plain: bool) -> float:
    """What p must lie below."""
    speed = row.speedup if plain else row.low
    return (speed or _UNTIMED) if row.correct else -inf


@dataclass(slots=True)
class Tally:
    """One problem's samples: how many, and how many of them are good."""

    n: int = 0
    good: int = 0


def correct_tallies(rows: Iterable[Row]) -> dict[str, Tally]:
    """By problem."""
    return _tallies((row, row.correct) for row in rows)


def fast_tallies(rows: Iterable[Row], p: float, plain: bool = False) -> dict[str, Tally]:
    """By problem."""
    return _tallies((row, is_fast(row, p, plain)) for row in rows)


def at_k(tallies: dict[str, Tally], k: int) -> Estimate | None:
    """The mean over problems that have k samples or more; None where none has."""
    return estimate.mean([pass_at_k(t.n, t.good, k) for t in tallies.values() if t.n >= k])


def fast_p_curve(rows: Iterable[Row], ps: Sequence[float], plain: bool = False) -> list[float | None]:
    """fast_p at each p: the mean over problems of the share of their samples that are fast; None without samples."""
    speeds: dict[str, list[float]] = {}
    for row in rows:
        if row.counts:
            speeds.setdefault(row.problem, []).append(_speed(row, plain))
    ordered = [sorted(found) for found in speeds.values()]
    return [fmean(1 - bisect_right(found, p) / len(found) for found in ordered) if ordered else None for p in ps]


def fast_p_at_turns(samples: Iterable[Sequence[Row]], p: float) -> list[Estimate | None]:
    """fast_p by turn, from the rows of each sample's turns: the mean over problems of the share of their samples of
    which some turn, up to this one, is fast. A sample that has ended stays what it was."""
    found = [list(filter(lambda row: row.counts, turns)) for turns in samples]
    last = max((row.turn for turns in found for row in turns), default=0)
    return [_fast_by(found, p, turn) for turn in range(1, last + 1)]


def _fast_by(samples: Iterable[Sequence[Row]], p: float, turn: int) -> Estimate | None:
    best = ([row for row in turns if row.turn <= turn] for turns in samples)
    tallies = _tallies((turns[0], any(is_fast(row, p) for row in turns)) for turns in best if turns)
    return at_k(tallies, 1)


def _tallies(judged: Iterable[tuple[Row, bool]]) -> dict[str, Tally]:
    found: dict[str, Tally] = {}
    for row, good in judged:
        if row.counts:
            tally = found.setdefault(row.problem, Tally())
            tally.n += 1
            tally.good += good
    return found
