"""How fast: reference and candidate, both resident, take turns in short blocks, so that drift hits both alike."""

import statistics
from dataclasses import dataclass, replace

import numpy as np

from pkb.judge.nursery import Nursery
from pkb.judge.reference import reference_world
from pkb.judge.seeds import Seeds
from pkb.judge.trials import Setup
from pkb.judge.world import World
from pkb.record import Pace

PAIRS = 8
CALLS = 5
MARGIN = 0.02
"""A ratio whose interval reaches this close to 1 is a tie."""
_RESAMPLES = 2000
_FIRST_TIMED_TRIAL = 1_000_000
"""Seeds of timed calls are never those of checked ones."""


@dataclass(frozen=True)
class Timing:
    """Microseconds are medians of blocks; a call takes as long as its slowest rank."""

    method: str
    reference_us: float
    candidate_us: float
    speedup: float
    interval: tuple[float, float]
    """95 %, by bootstrap over pairs of blocks."""
    reference_blocks_us: list[list[float]]
    candidate_blocks_us: list[list[float]]
    pace: Pace


def measure(candidate: World, setup: Setup, nursery: Nursery, seeds: Seeds) -> Timing:
    timed = replace(setup, calls=CALLS)
    with reference_world(setup, nursery) as reference:
        worlds = {"reference": reference, "candidate": candidate}
        for world in worlds.values():
            _block(world, timed, seeds, 0)
        blocks: dict[str, list[list[float]]] = {name: [] for name in worlds}
        for pair in range(PAIRS):
            # A B B A ...: neither side is always first.
            for name in ("reference", "candidate") if pair % 2 == 0 else ("candidate", "reference"):
                blocks[name].append(_block(worlds[name], timed, seeds, pair + 1))
        reference.end()
    return _summary(nursery.platform.name, blocks["reference"], blocks["candidate"])


def _block(world: World, setup: Setup, seeds: Seeds, block: int) -> list[float]:
    setup.prepare(world, seeds, _FIRST_TIMED_TRIAL + block)
    answers = world.ask({"do": "time"}, "timing", setup.limits.trial_s)
    spans = np.array([answer["ns"] for answer in answers], dtype=float)
    return [float(span) / 1000 for span in spans.max(axis=0)]


def _summary(platform: str, reference: list[list[float]], candidate: list[list[float]]) -> Timing:
    ours, theirs = ([statistics.median(block) for block in blocks] for blocks in (reference, candidate))
    ratios = [r / c for r, c in zip(ours, theirs, strict=True)]
    low, high = bootstrap(ratios)
    return Timing(
        method=f"{platform}: alternating blocks, host clock, slowest rank of each call",
        reference_us=statistics.median(ours),
        candidate_us=statistics.median(theirs),
        speedup=statistics.median(ratios),
        interval=(low, high),
        reference_blocks_us=reference,
        candidate_blocks_us=candidate,
        pace=_pace(low, high),
    )


def bootstrap(ratios: list[float]) -> tuple[float, float]:
    """95 % interval of the median."""
    picks = np.random.default_rng(0).integers(len(ratios), size=(_RESAMPLES, len(ratios)))
    medians = np.median(np.asarray(ratios)[picks], axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return float(low), float(high)


def _pace(low: float, high: float) -> Pace:
    if low > 1 + MARGIN:
        return Pace.FASTER
    return Pace.SLOWER if high < 1 - MARGIN else Pace.TIE
