"""What changed between two runs, as far as their times can be believed."""

from dataclasses import replace

from pkb.analyse import Change, Compared, Row, compared
from pkb.judge.pace import MARGIN

CPU = "cpu"
_SETTINGS = ("platform", "world", "dtype", "m", "n")


def changes(before: list[Row], after: list[Row]) -> list[Compared]:
    """Problem by problem.

    An interval covers the noise within one judgement. From one judgement to the next, CPU times of the same kernel
    differ severalfold on a busy machine: they are not compared, nor are times taken under other settings. On GPUs a
    difference within the margin of a tie is noise.
    """
    return [_believed(one) for one in compared(before, after)]


def other_settings(one: Compared) -> list[str]:
    """What else differs."""
    pairs = [(name, getattr(one.before, name, None), getattr(one.after, name, None)) for name in _SETTINGS]
    return [f"{name} {a} / {b}" for name, a, b in pairs if a != b] if one.before and one.after else []


def _believed(one: Compared) -> Compared:
    if one.ratio is None or not one.before or not one.after:
        return one
    if CPU in (one.before.platform, one.after.platform) or other_settings(one):
        return replace(one, change=Change.SAME, ratio=None)
    return replace(one, change=Change.NOISE) if abs(one.ratio - 1) <= MARGIN else one
