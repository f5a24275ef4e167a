"""Two runs, problem by problem: what is better, what is worse, and what is noise."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from pkb.row import Row
from pkb.speedup import MARGIN

_SETTINGS = ("platform", "world", "dtype", "m", "n", "size", "inputs")


class Change(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NOISE = "noise"
    """Both are right, and the intervals overlap, or the ratio is within the margin of a tie."""
    SAME = "same"
    """Neither is right, or there are no times that can be compared."""
    NEW = "new"
    """The problem is only in the second run."""
    GONE = "gone"
    """The problem is only in the first run."""


@dataclass(frozen=True)
class Comparison:
    """The best sample that each run has of one problem; None where a run has none."""

    problem: str
    number: int
    category: str
    before: Row | None
    after: Row | None
    change: Change
    ratio: float | None
    """The speed-up after over the one before, where they can be compared."""

    @property
    def other_settings(self) -> list[str]:
        """The settings in which the two judgements differ, in words."""
        pairs = [(name, getattr(self.before, name, None), getattr(self.after, name, None)) for name in _SETTINGS]
        return [f"{name} {a} / {b}" for name, a, b in pairs if a != b] if self.before and self.after else []


def compare_runs(rows_a: Iterable[Row], rows_b: Iterable[Row]) -> list[Comparison]:
    """Return the changes from a to b, in the problems' order.

    An interval covers the noise within one judgement. From one judgement to the next, CPU times of the same kernel
    differ severalfold on a busy machine: they are not compared, nor are times taken under other settings. On GPUs a
    difference within the margin of a tie is noise.
    """
    before, after = _find_best(rows_a), _find_best(rows_b)
    pairs = [(before.get(problem), after.get(problem)) for problem in before.keys() | after.keys()]
    return sorted((_compare(a, b) for a, b in pairs), key=lambda one: (one.number, one.problem))


def _find_best(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the best row per problem: right before wrong, then by the low end of the speed-up's interval."""
    best: dict[str, Row] = {}
    for row in rows:
        if row.counts and (row.problem not in best or _make_sort_key(row) > _make_sort_key(best[row.problem])):
            best[row.problem] = row
    return best


def _make_sort_key(row: Row) -> tuple[bool, float]:
    return row.correct, row.low or 0.0


def _compare(before: Row | None, after: Row | None) -> Comparison:
    known = after or before
    assert known, "one of the runs has the problem"
    one = Comparison(known.problem, known.number, known.category, before, after, _compare_verdicts(before, after), None)
    if not before or not after or not (before.speedup and after.speedup):
        return one
    if not (before.comparable and after.comparable) or one.other_settings:
        return one
    ratio = after.speedup / before.speedup
    change = _compare_times(before, after, ratio) if one.change is Change.SAME else one.change
    return replace(one, ratio=ratio, change=change)


def _compare_verdicts(before: Row | None, after: Row | None) -> Change:
    if before is None or after is None:
        return Change.NEW if before is None else Change.GONE
    if before.correct == after.correct:
        return Change.SAME
    return Change.BETTER if after.correct else Change.WORSE


def _compare_times(before: Row, after: Row, ratio: float) -> Change:
    if not after.correct or before.low is None or before.high is None or after.low is None or after.high is None:
        return Change.SAME
    if abs(ratio - 1) <= MARGIN or (after.low <= before.high and before.low <= after.high):
        return Change.NOISE
    return Change.BETTER if ratio > 1 else Change.WORSE
