"""From the spans of timed blocks to a speed-up with its interval, and what it is worth."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkb.record import Pace

MARGIN = 0.02
"""A ratio whose interval reaches this close to 1 is a tie."""
_NARROW = 0.0075
_OFTEN = 0.5
_RESAMPLES = 2000

Spans = list[list[list[float]]]
"""Microseconds by block, call and rank."""


@dataclass(frozen=True)
class Timing:
    """Microseconds are medians over blocks; a block's is the mean of its middle half of calls, which varies less than
    its median; a call takes as long as its slowest rank."""

    method: str
    rigor: str
    reference_us: float
    candidate_us: float
    speedup: float
    interval: tuple[float, float]
    """95 %, by bootstrap over pairs of blocks, and wider by the spread."""
    spread: float
    """The share by which identical code may differ between two processes, in calls of this length."""
    pace: Pace
    skew_us: dict[str, float]
    """Between the slowest and the fastest rank of a call: its median, by side."""
    queued: dict[str, float]
    """The share of blocks in which every call was queued before the device began with it, by side."""
    calls_per_block: int
    warm_up_calls: dict[str, int]
    cache: str
    roofline_us: float | None
    """The speed of light of this problem on this hardware; None where we have no figures of it."""
    percent_of_roofline: dict[str, float]
    control: dict[str, Any]
    """The reference in both worlds, before one was given the candidate: the ratio of identical code, its interval and
    blocks. The speed-up is what the candidate's ratio is beyond that one. Empty where it was not needed."""
    outside_us: dict[str, float]
    """The judge's own clock: what a call took by it, and what of that was harness."""
    checked_calls: int
    """Timed calls whose outputs were compared, on every rank."""
    clocks: dict[str, Any]
    baselines: dict[str, dict[str, Any]]
    """Beyond the eager reference: microseconds, the candidate's speed-up over it, or why it could not be timed."""
    blocks_us: dict[str, Spans] = field(repr=False)

    @property
    def waits(self) -> bool:
        """Whether calls wait for the device, on either side: the host was seldom ahead of it."""
        return min(self.queued.values()) < _OFTEN


def block_times(spans: Spans) -> list[float]:
    return [_midmean([max(call) for call in block]) for block in spans]


def _midmean(values: list[float]) -> float:
    """The mean of what is left without the lowest and the highest quarter."""
    quarter = len(values) // 4
    return statistics.fmean(sorted(values)[quarter : len(values) - quarter])


def skew(spans: Spans) -> float:
    return statistics.median(max(call) - min(call) for block in spans for call in block)


def typical(spans: Spans) -> float:
    """Microseconds of a call."""
    return statistics.median(block_times(spans))


def compared(
    ours: Spans, theirs: Spans, spread: float, control: Sequence[float] = (1.0,)
) -> tuple[float, tuple[float, float], Pace]:
    """How much faster `theirs` is: the median ratio of paired blocks, its interval, and the word for it.

    `control` has the ratios that identical code had on these two sides; they are taken out.
    """
    found = ratios(ours, theirs)
    sampled = _quantiles(_resampled(found, seed=0) / _resampled(control, seed=1))
    low, high = _widened(sampled, 1.0, spread)
    return statistics.median(found) / statistics.median(control), (low, high), _pace(low, high)


def compared_apart(ours: Spans, theirs: Spans, drift: float, spread: float) -> tuple[float, tuple[float, float], Pace]:
    """The same for blocks that did not take turns: the ratio of medians, each side resampled by itself.

    `drift` is how much slower what was timed on both occasions was on the later one; the interval reaches that far.
    """
    before, after = block_times(ours), block_times(theirs)
    sampled = _quantiles(_resampled(before, seed=0) / _resampled(after, seed=1))
    low, high = _widened(sampled, drift, spread)
    return statistics.median(before) / statistics.median(after), (low, high), _pace(low, high)


def _widened(interval: tuple[float, float], drift: float, spread: float) -> tuple[float, float]:
    low, high = interval
    return low * min(1.0, drift) / (1 + spread), high * max(1.0, drift) * (1 + spread)


def with_stored(timing: Timing, stored: Mapping[str, Mapping[str, Any]], spread: float) -> Timing:
    """Beside baselines that were timed on another occasion, on a machine like this one."""
    apart = {name: _apart(one, timing, spread) for name, one in stored.items()}
    return replace(timing, baselines=timing.baselines | apart)


def _apart(times: Mapping[str, Any], timing: Timing, spread: float) -> dict[str, Any]:
    origin = {"stored": True, "when": times["when"], "fingerprint": times["fingerprint"]}
    if "failed" in times:
        return {"failed": times["failed"], **origin}
    drift = timing.reference_us / times["eager_us"]
    speedup, interval, pace = compared_apart(times["blocks_us"], timing.blocks_us["candidate"], drift, spread)
    found = {"us": times["us"], "speedup": speedup, "interval": interval, "pace": pace, "paired": False, "drift": drift}
    return {**found, **origin, "blocks_us": times["blocks_us"]}


def is_narrow(ours: Spans, theirs: Spans) -> bool:
    """Whether more blocks would hardly change what is reported."""
    return _narrow(bootstrap(ratios(ours, theirs)))


def is_steady(spans: Spans) -> bool:
    """The same for the time of one side."""
    return _narrow(bootstrap(block_times(spans)))


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the median."""
    return _quantiles(_resampled(values, seed=0))


def _resampled(values: Sequence[float], seed: int) -> NDArray:
    """Medians of values drawn from these, as many, with putting back."""
    picks = np.random.default_rng(seed).integers(len(values), size=(_RESAMPLES, len(values)))
    return np.median(np.asarray(values)[picks], axis=1)


def _quantiles(resampled: NDArray) -> tuple[float, float]:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)


def _narrow(interval: tuple[float, float]) -> bool:
    low, high = interval
    return (high - low) / 2 < _NARROW * low


def ratios(ours: Spans, theirs: Spans) -> list[float]:
    """Of paired blocks."""
    return [r / c for r, c in zip(block_times(ours), block_times(theirs), strict=True)]


def _pace(low: float, high: float) -> Pace:
    if low > 1 + MARGIN:
        return Pace.FASTER
    return Pace.SLOWER if high < 1 - MARGIN else Pace.TIE
