"""What is wanted of the judge: how a problem is posed, what is asked of a judgement, and what ranks may use.

All of it is plain data that survives JSON (`pkb.base.schema`): the command line, `pkb.evaluate`, engines on other
machines, the red team and the baselines say what they want with these types, and with nothing else.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pkb.errors import UsageError
from pkb.problems.problem import PUBLISHED, SOUND
from pkb.problems.size import Size, find_dtype_name

INPUTS = (SOUND, PUBLISHED)
_LEAST_TOTAL_S, _TRIALS_IN_TOTAL = 1200.0, 20
"""A candidate's world may take this many seconds in all, or as long as this many trials that use all their time."""


class Track(StrEnum):
    ANY = "any"
    """Whatever is fastest, libraries included."""
    SCRATCH = "scratch"
    """Communication and products of matrices are the candidate's own work."""


def find_track(name: str) -> Track:
    """Return the track of this name, or raise UsageError."""
    if name not in list(Track):
        raise UsageError(f"unknown track {name!r}; choose from {', '.join(Track)}")
    return Track(name)


@dataclass(frozen=True)
class Tolerance:
    """The plain convention |got - expected| <= atol + rtol * |expected|, against the reference."""

    atol: float
    rtol: float


@dataclass(frozen=True)
class Rigor:
    """How much is measured before the judge says how fast a candidate is."""

    name: str
    warm_up: int
    """The least number of calls before the first timed one; the judge's secret adds up to a half."""
    warm_up_s: float
    """The warm-up ends after this many seconds, even with fewer calls; the record has the number of calls."""
    least_pairs: int
    """The least number of pairs of blocks."""
    calls_per_block: int
    """The most calls in one block; the judge's secret, large arguments and long calls make blocks shorter."""
    most_pairs: int
    """The most pairs of blocks, should the interval stay wide."""
    checked_blocks: int
    """The number of timed blocks, drawn after the last one, of which one call's outputs are checked."""
    most_pairs_together: int = 0
    """The most pairs of blocks for several ranks, whose times vary more; 0 means `most_pairs`."""
    pairs_s: float = math.inf
    """After this many seconds, no further pairs are timed beyond the least number, even if the interval is wide."""
    warm_cache: bool = False

    def most_blocks(self, world: int) -> int:
        return max(self.least_pairs, (world > 1 and self.most_pairs_together) or self.most_pairs)


RIGORS = {
    "quick": Rigor("quick", 20, 1.0, least_pairs=8, calls_per_block=8, most_pairs=16, checked_blocks=12, pairs_s=3.0),
    "paper": Rigor(
        *("paper", 500, 2.0),
        least_pairs=10,
        calls_per_block=10,
        most_pairs=30,
        checked_blocks=32,
        most_pairs_together=60,
        pairs_s=5.0,
    ),
}


def find_rigor(name: str) -> Rigor:
    """Return the rigor of this name, or raise UsageError."""
    if name not in RIGORS:
        raise UsageError(f"unknown rigor {name!r}; choose from {', '.join(RIGORS)}")
    return RIGORS[name]


@dataclass(frozen=True)
class Limits:
    """What a world of ranks may use before the judge ends it: seconds per phase and world, bytes per rank."""

    start_s: float = 60.0
    """From the request for a world until all its ranks are connected."""
    build_s: float = 300.0
    """For compiling the candidate's extensions, before any GPU is held."""
    load_s: float = 60.0
    """For importing the candidate; what could not be compiled before may take `build_s` more."""
    trial_s: float = 60.0
    """For all calls of one trial, and bringing their outputs back."""
    log_bytes: int = 16 << 20
    """Of printed output; a rank that prints more is ended."""
    memory_bytes: int | None = None
    """Of allocated memory; None takes the platform's default."""

    @property
    def total_s(self) -> float:
        """Seconds of all that the ranks of a candidate's world are asked to do, together."""
        return max(_LEAST_TOTAL_S, _TRIALS_IN_TOTAL * self.trial_s)


@dataclass(frozen=True)
class ProblemSettings:
    """How a problem is posed."""

    nproc: int | None = None
    """The number of ranks; None takes the problem's default."""
    size: str | Size | None = None
    """A size by name, or rows and columns; None takes the problem's default."""
    dtype: str = "float32"
    trials: int | None = None
    """The number of ordinary trials; None takes the problem's default."""
    calls: int = 3
    """Back-to-back calls in one trial, without a host synchronisation between them."""
    inputs: str = "sound"
    """`sound`; or, for KernelBench's tasks and a checkout of ParallelKernelBench, `published`: as their files draw."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", find_dtype_name(self.dtype))
        if self.inputs not in INPUTS:
            raise UsageError(f"unknown inputs {self.inputs!r}; choose from {', '.join(INPUTS)}")


@dataclass(frozen=True)
class JudgementSettings:
    """What is asked of a judgement."""

    track: Track = Track.ANY
    tolerance: Tolerance | None = None
    """None compares by the oracle's rule."""
    screen: bool = True
    """Without the screen, a candidate runs whatever its source shows, and the checks that follow stand alone."""
    rigor: Rigor | None = None
    """How candidates that are right are timed; None leaves them untimed."""
    baselines: tuple[str, ...] = ()
    """What torch.compile makes of the reference, timed beside it."""
    stored: Mapping[str, Any] = field(default_factory=dict)
    """Times of further baselines, as the baseline store has them."""
    profile: bool = False
    """Whether a few calls are profiled once the verdict stands."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "track", find_track(self.track))
        object.__setattr__(self, "baselines", tuple(self.baselines))
