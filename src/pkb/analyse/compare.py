"""Two runs, problem by problem: what is better, what is worse, and what is noise."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pkb.analyse.reading import Row


class Change(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NOISE = "noise"
    """Both right, and the intervals overlap."""
    SAME = "same"
    """Neither is right, or there are no times to compare."""
    NEW = "new"
    """Only in the second."""
    GONE = "gone"
    """Only in the first."""


@dataclass(frozen=True)
class Compared:
    """Each side's best sample of one problem; None where it has none."""

    problem: str
    number: int
    category: str
    before: Row | None
    after: Row | None
    change: Change
    ratio: float | None
    """Of the speed-ups, after over before."""


def compared(rows_a: Iterable[Row], rows_b: Iterable[Row]) -> list[Compared]:
    """From a to b, in the problems' order."""
    before, after = _best(rows_a), _best(rows_b)
    pairs = [(before.get(problem), after.get(problem)) for problem in before.keys() | after.keys()]
    return sorted((_compared(a, b) for a, b in pairs), key=lambda one: (one.number, one.problem))


def _best(rows: Iterable[Row]) -> dict[str, Row]:
    """Per problem: right before wrong, then by the speed-up that is sure."""
    best: dict[str, Row] = {}
    for row in rows:
        if row.counts and (row.problem not in best or _merit(row) > _merit(best[row.problem])):
            best[row.problem] = row
    return best


def _merit(row: Row) -> tuple[bool, float]:
    return row.correct, row.low or 0.0


def _compared(before: Row | None, after: Row | None) -> Compared:
    known = after or before
    assert known, "one side has it"
    ratio = after.speedup / before.speedup if after and before and after.speedup and before.speedup else None
    return Compared(known.problem, known.number, known.category, before, after, _change(before, after), ratio)


def _change(before: Row | None, after: Row | None) -> Change:
    if before is None or after is None:
        return Change.NEW if before is None else Change.GONE
    if before.correct != after.correct:
        return Change.BETTER if after.correct else Change.WORSE
    if not after.correct or before.low is None or before.high is None or after.low is None or after.high is None:
        return Change.SAME
    if after.low > before.high:
        return Change.BETTER
    return Change.WORSE if after.high < before.low else Change.NOISE
