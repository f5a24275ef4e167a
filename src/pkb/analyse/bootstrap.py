"""A figure with its 95 % interval, by bootstrap over problems: had the suite drawn others like them."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

_RESAMPLES = 1000
_MOST_AT_ONCE = 1 << 22
_Z = statistics.NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Estimate:
    value: float
    low: float
    high: float
    problems: int
    """How many problems it is over."""


def mean(values: Sequence[float]) -> Estimate | None:
    """Of shares, one per problem; None without any."""
    if not values:
        return None
    # Where all problems agree, a bootstrap knows no doubt; Wilson's interval does.
    if set(values) in ({0.0}, {1.0}):
        doubt = _Z**2 / (len(values) + _Z**2)
        low, high = (0.0, doubt) if values[0] == 0 else (1 - doubt, 1.0)
        return Estimate(values[0], low, high, len(values))
    means = _resampled(len(values)) @ np.asarray(values) / len(values)
    return _estimate(statistics.fmean(values), means, len(values))


def geometric_mean(values: Mapping[str, Sequence[float]]) -> Estimate | None:
    """Over all values of all problems; None without any."""
    groups = [np.log(group) for group in values.values() if len(group)]
    if not groups:
        return None
    sums, sizes = np.array([group.sum() for group in groups]), np.array([len(group) for group in groups])
    counts = _resampled(len(groups))
    means = np.exp((counts @ sums) / (counts @ sizes))
    return _estimate(math.exp(sums.sum() / sizes.sum()), means, len(groups))


def median(values: Mapping[str, Sequence[float]]) -> Estimate | None:
    """Over all values of all problems; None without any."""
    groups = [group for group in values.values() if len(group)]
    if not groups:
        return None
    pooled = np.concatenate([np.asarray(group, dtype=float) for group in groups])
    order = np.argsort(pooled)
    ordered, owner = pooled[order], np.repeat(np.arange(len(groups)), [len(group) for group in groups])[order]
    parts = np.array_split(_resampled(len(groups)), 1 + _RESAMPLES * len(pooled) // _MOST_AT_ONCE)
    medians = np.concatenate([_weighted_medians(ordered, counts[:, owner]) for counts in parts])
    return _estimate(float(np.median(pooled)), medians, len(groups))


def _weighted_medians(ordered: NDArray, weights: NDArray) -> NDArray:
    """By resample, of each value repeated as often as its weight says."""
    reached = np.cumsum(weights, axis=1)
    total = reached[:, -1:]
    lower, upper = ((reached < rank).sum(axis=1) for rank in ((total + 1) // 2, total // 2 + 1))
    return (ordered[lower] + ordered[upper]) / 2


@cache
def _resampled(problems: int) -> NDArray:
    """How often each problem is drawn, by resample."""
    return np.random.default_rng(0).multinomial(problems, np.full(problems, 1 / problems), size=_RESAMPLES)


def _estimate(value: float, resampled: NDArray, problems: int) -> Estimate:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Estimate(value, float(low), float(high), problems)
