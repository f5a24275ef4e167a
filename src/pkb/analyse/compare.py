"""Two runs, problem by problem: what is better, what is worse, and what is noise."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from pkb.analyse.rows import Row
from pkb.speedup import MARGIN

CPU = "cpu"
_SETTINGS = ("platform", "world", "dtype", "m", "n", "size", "inputs")


class Change(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NOISE = "noise"
    """Both right, and the intervals overlap, or the ratio is within the margin of a tie."""
    SAME = "same"
    """Neither is right, or there are no times that can be compared."""
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
    """Of the speed-ups, after over before, where they can be compared."""

    @property
    def other_settings(self) -> list[str]:
        """What else differs, in words."""
        pairs = [(name, getattr(self.before, name, None), getattr(self.after, name, None)) for name in _SETTINGS]
        return [f"{name} {a} / {b}" for name, a, b in pairs if a != b] if self.before and self.after else []


def compared(rows_a: Iterable[Row], rows_b: Iterable[Row]) -> list[Compared]:
    """From a to b, in the problems' order.

    An interval covers the noise within one judgement. From one judgement to the next, CPU times of the same kernel
    differ severalfold on a busy machine: they are not compared, nor are times taken under other settings. On GPUs a
    difference within the margin of a tie is noise.
    """
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
    one = Compared(known.problem, known.number, known.category, before, after, _by_verdict(before, after), None)
    if not before or not after or not (before.speedup and after.speedup):
        return one
    if CPU in (before.platform, after.platform) or one.other_settings:
        return one
    ratio = after.speedup / before.speedup
    return replace(one, ratio=ratio, change=_by_time(before, after, ratio) if one.change is Change.SAME else one.change)


def _by_verdict(before: Row | None, after: Row | None) -> Change:
    if before is None or after is None:
        return Change.NEW if before is None else Change.GONE
    if before.correct == after.correct:
        return Change.SAME
    return Change.BETTER if after.correct else Change.WORSE


def _by_time(before: Row, after: Row, ratio: float) -> Change:
    if not after.correct or before.low is None or before.high is None or after.low is None or after.high is None:
        return Change.SAME
    if abs(ratio - 1) <= MARGIN or (after.low <= before.high and before.low <= after.high):
        return Change.NOISE
    return Change.BETTER if ratio > 1 else Change.WORSE
