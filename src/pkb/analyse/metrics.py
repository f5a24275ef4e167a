"""pass@k and fast_p@k. A verdict of ENVIRONMENT is never counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

from pkb.analyse import estimate
from pkb.analyse.estimate import Estimate
from pkb.analyse.reading import Row


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that k samples drawn from n without putting back hold one of the c good ones; needs k <= n."""
    return 1 - comb(n - c, k) / comb(n, k)


def is_fast(row: Row, p: float, plain: bool = False) -> bool:
    """Right, and more than p times as fast as the reference: surely (the interval's low end), or `plain`, at its best
    guess. What was not timed is not fast; above p = 0 counts whatever is right."""
    speed = row.speedup if plain else row.low
    return row.correct and (p <= 0 or (speed is not None and speed > p))


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
    found = list(rows)
    return [_share(fast_tallies(found, p, plain)) for p in ps]


def _share(tallies: dict[str, Tally]) -> float | None:
    return sum(t.good / t.n for t in tallies.values()) / len(tallies) if tallies else None


def _tallies(judged: Iterable[tuple[Row, bool]]) -> dict[str, Tally]:
    found: dict[str, Tally] = {}
    for row, good in judged:
        if row.counts:
            tally = found.setdefault(row.problem, Tally())
            tally.n += 1
            tally.good += good
    return found
