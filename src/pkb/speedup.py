"""From the raw times of timed blocks to a speed-up with its interval, and to FASTER, TIE or SLOWER."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pkb.base.resampling import find_interval, resample_medians
from pkb.record import BaselineTimes, Interval, Pace, Spans, Timing

MARGIN = 0.02
"""A ratio whose interval reaches this close to 1 is a tie."""
_NARROW = 0.0075
"""Half of an interval's width over its low end, below which more blocks would hardly change the result."""


def compute_block_times(spans: Spans) -> list[float]:
    """Return the microseconds of a typical call of each block."""
    return [_compute_midmean([max(call) for call in block]) for block in spans]


def _compute_midmean(values: list[float]) -> float:
    """Return the mean without the lowest and the highest quarter."""
    quarter = len(values) // 4
    return statistics.fmean(sorted(values)[quarter : len(values) - quarter])


def compute_skew(spans: Spans) -> float:
    """Return the median difference between the slowest and the fastest rank of a call."""
    return statistics.median(max(call) - min(call) for block in spans for call in block)


def compute_call_time(spans: Spans) -> float:
    """Return the microseconds of a call: the median over blocks."""
    return statistics.median(compute_block_times(spans))


def compare_blocks(
    ours: Spans, theirs: Spans, spread: float, control: Sequence[float] = (1.0,)
) -> tuple[float, Interval, Pace]:
    """Return how much faster `theirs` is: the median ratio of paired blocks, its interval, and the pace.

    `control` has the ratios that identical code had in these two worlds; they are divided out.
    """
    found = compute_ratios(ours, theirs)
    interval = find_interval(resample_medians(found, seed=0) / resample_medians(control, seed=1))
    low, high = _widen(interval, 1.0, spread)
    return statistics.median(found) / statistics.median(control), (low, high), _choose_pace(low, high)


def compare_separate_blocks(ours: Spans, theirs: Spans, drift: float, spread: float) -> tuple[float, Interval, Pace]:
    """Do the same for blocks that did not take turns: the ratio of medians, resampled independently.

    `drift` is how much slower the same code was on the later of the two occasions; the interval reaches that far.
    """
    before, after = compute_block_times(ours), compute_block_times(theirs)
    interval = find_interval(resample_medians(before, seed=0) / resample_medians(after, seed=1))
    low, high = _widen(interval, drift, spread)
    return statistics.median(before) / statistics.median(after), (low, high), _choose_pace(low, high)


def _widen(interval: Interval, drift: float, spread: float) -> Interval:
    low, high = interval
    return low * min(1.0, drift) / (1 + spread), high * max(1.0, drift) * (1 + spread)


def add_stored_baselines(timing: Timing, stored: Mapping[str, Mapping[str, Any]], spread: float) -> Timing:
    """Add the speed-ups over baselines that were timed earlier, on a machine like this one."""
    found = {name: _compare_stored(times, timing, spread) for name, times in stored.items()}
    return replace(timing, baselines=timing.baselines | found)


def _compare_stored(times: Mapping[str, Any], timing: Timing, spread: float) -> BaselineTimes:
    origin = BaselineTimes(stored=True, when=times["when"], fingerprint=times["fingerprint"])
    if "failed" in times:
        return replace(origin, failed=times["failed"])
    us, blocks, drift = times["us"], times["blocks_us"], timing.reference_us / times["eager_us"]
    speedup, interval, pace = compare_separate_blocks(blocks, timing.blocks_us["candidate"], drift, spread)
    ratio = {"speedup": speedup, "interval": interval, "pace": pace, "paired": False, "drift": drift}
    return replace(origin, us=us, **ratio, blocks_us=blocks)


def extend_interval(timing: Timing, ratio: float) -> dict[str, Any]:
    """Return the interval that also reaches down to a ratio, and the pace that follows from it."""
    low, high = timing.interval
    return {"interval": (min(low, ratio), high), "pace": _choose_pace(min(low, ratio), high)}


def is_narrow(ours: Spans, theirs: Spans) -> bool:
    """Whether more blocks would hardly change the speed-up that is reported."""
    return _is_narrow(bootstrap_median(compute_ratios(ours, theirs)))


def is_steady(spans: Spans) -> bool:
    """Whether more blocks would hardly change the time that is reported."""
    return _is_narrow(bootstrap_median(compute_block_times(spans)))


def _is_narrow(interval: Interval) -> bool:
    low, high = interval
    return (high - low) / 2 < _NARROW * low


def bootstrap_median(values: Sequence[float]) -> Interval:
    """Return the 95 % interval of the median."""
    return find_interval(resample_medians(values))


def compute_ratios(ours: Spans, theirs: Spans) -> list[float]:
    """Return the ratio of each pair of blocks."""
    return [r / c for r, c in zip(compute_block_times(ours), compute_block_times(theirs), strict=True)]


def _choose_pace(low: float, high: float) -> Pace:
    if low > 1 + MARGIN:
        return Pace.FASTER
    return Pace.SLOWER if high < 1 - MARGIN else Pace.TIE
