"""Figures with their 95 % intervals, by bootstrap: as if the suite had drawn other problems, and models other samples.

Fewer than LEAST_PROBLEMS problems say too little about others: their figures have no interval.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkb.base.resampling import RESAMPLES, compute_weighted_medians, draw_counts, find_interval

LEAST_PROBLEMS = 5
"""The least number of problems whose figure has an interval."""
_MOST_AT_ONCE = 1 << 22
"""The most weights that are held in memory at a time."""
_Z = statistics.NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Estimate:
    value: float
    low: float | None
    """None, as `high`, for fewer than LEAST_PROBLEMS problems."""
    high: float | None
    problems: int
    """The number of problems behind the figure."""

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def estimate_mean(values: Sequence[float], variances: Sequence[float] = ()) -> Estimate | None:
    """Return the mean of shares, one per problem; None without any.

    `variances` says by how much each share would vary if the problem's samples were drawn again. Without it problems
    of two samples, of which one is right in each, would all agree on one half.
    """
    if not values:
        return None
    if len(values) < LEAST_PROBLEMS:
        return Estimate(statistics.fmean(values), None, None, len(values))
    # Where all problems agree, a bootstrap knows no doubt; Wilson's interval does.
    if set(values) in ({0.0}, {1.0}):
        doubt = _Z**2 / (len(values) + _Z**2)
        low, high = (0.0, doubt) if values[0] == 0 else (1 - doubt, 1.0)
        return Estimate(values[0], low, high, len(values))
    counts = draw_counts(len(values))
    means = counts @ np.asarray(values)
    if any(variances):
        # The sum over many problems of what their samples scatter is nearly normal.
        noise = np.random.default_rng(1).standard_normal(RESAMPLES)
        means = means + noise * np.sqrt(counts @ np.asarray(variances))
    return _make_estimate(statistics.fmean(values), np.clip(means / len(values), 0.0, 1.0), len(values))


def estimate_geometric_mean(values: Mapping[str, Sequence[float]]) -> Estimate | None:
    """Return the geometric mean over all values of all problems; None without any."""
    groups = [np.log(group) for group in values.values() if len(group)]
    if not groups:
        return None
    sums, sizes = np.array([group.sum() for group in groups]), np.array([len(group) for group in groups])
    counts = draw_counts(len(groups))
    means = np.exp((counts @ sums) / (counts @ sizes))
    return _make_estimate(math.exp(sums.sum() / sizes.sum()), means, len(groups))


def estimate_median(values: Mapping[str, Sequence[float]]) -> Estimate | None:
    """Return the median over all values of all problems; None without any."""
    groups = [group for group in values.values() if len(group)]
    if not groups:
        return None
    pooled = np.concatenate([np.asarray(group, dtype=float) for group in groups])
    order = np.argsort(pooled)
    ordered, owner = pooled[order], np.repeat(np.arange(len(groups)), [len(group) for group in groups])[order]
    parts = np.array_split(draw_counts(len(groups)), 1 + RESAMPLES * len(pooled) // _MOST_AT_ONCE)
    medians = np.concatenate([compute_weighted_medians(ordered, counts[:, owner]) for counts in parts])
    return _make_estimate(float(np.median(pooled)), medians, len(groups))


def _make_estimate(value: float, resampled: NDArray, problems: int) -> Estimate:
    if problems < LEAST_PROBLEMS:
        return Estimate(value, None, None, problems)
    return Estimate(value, *find_interval(resampled), problems)
