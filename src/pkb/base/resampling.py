"""Bootstrap: how far a figure scatters when its items are drawn again and again, with replacement."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000


@cache
def draw_counts(items: int, seed: int = 0) -> NDArray:
    """Return how often each of the items is drawn, by resample; equal arguments draw equally."""
    counts = np.random.default_rng(seed).multinomial(items, np.full(items, 1 / items), size=RESAMPLES)
    # Half the memory: it is what medians over many values wait for.
    return counts.astype(np.int32)


def resample_medians(values: Sequence[float], seed: int = 0) -> NDArray:
    """Return the median of the values in each resample."""
    order = np.argsort(values)
    return compute_weighted_medians(np.asarray(values)[order], draw_counts(len(values), seed)[:, order])


def compute_weighted_medians(ordered: NDArray, weights: NDArray) -> NDArray:
    """Return, by resample, the median of values in ascending order that are each repeated by their weight."""
    reached = np.cumsum(weights, axis=1, dtype=np.int32)
    total = reached[:, -1:]
    lower, upper = (np.count_nonzero(reached < rank, axis=1) for rank in ((total + 1) // 2, total // 2 + 1))
    return (ordered[lower] + ordered[upper]) / 2


def find_interval(resampled: NDArray) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a resampled figure."""
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)
