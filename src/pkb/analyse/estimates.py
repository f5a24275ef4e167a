"""Figures with their 95 % intervals, by bootstrap over problems: as if the suite had drawn other problems."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkb.base.resampling import RESAMPLES, compute_weighted_medians, draw_counts, find_interval

_MOST_AT_ONCE = 1 << 22
"""The most weights that are held in memory at a time."""
_Z = statistics.NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Estimate:
    value: float
    low: float
    high: float
    problems: int
    """The number of problems behind the figure."""


def estimate_mean(values: Sequence[float]) -> Estimate | None:
    """Return the mean of shares, one per problem; None without any."""
    if not values:
        return None
    # Where all problems agree, a bootstrap knows no doubt; Wilson's interval does.
    if set(values) in ({0.0}, {1.0}):
        doubt = _Z**2 / (len(values) + _Z**2)
        low, high = (0.0, doubt) if values[0] == 0 else (1 - doubt, 1.0)
        return Estimate(values[0], low, high, len(values))
    means = draw_counts(len(values)) @ np.asarray(values) / len(values)
    return _make_estimate(statistics.fmean(values), means, len(values))


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
    return Estimate(value, *find_interval(resampled), problems)
