"""The judge's own clock: a candidate's process may say anything about its time, but it cannot bend ours.

The judge orders k calls, and 4k: inputs that nobody could know are drawn, the calls made, and all results digested
under a key that is told when they are said to be done. The difference is 3k calls, without what starting and answering
cost. What drawing and digesting cost, the trusted reference world shows, which does the same. Some of what was digested
is revealed afterwards, and must be right.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from pkb.judge.channel import FORGED
from pkb.judge.digest import digest
from pkb.judge.failure import Failure
from pkb.judge.sides import Side
from pkb.judge.trials import FIRST_STRETCH
from pkb.judge.world import garbled
from pkb.record import Verdict

_REPEATS = 5
_LONG = 4
_FACTOR = 1.5
_LENGTH_US = 500.0
_MOST = 16
"""Calls in the short stretch: few enough for a launch queue to hold four times as many."""
STRETCHES = range(FIRST_STRETCH, FIRST_STRETCH + 2 * _REPEATS)
"""Their numbers as trials, short and long ones in turn."""
_PHASE = "timing by the judge's clock"

Digests = list[list[list[list[int]]]]
"""Of every result: by rank, call, leaf and part."""


@dataclass(frozen=True)
class Slope:
    """Microseconds per call."""

    us: float
    noise_us: float


@dataclass(frozen=True)
class Stretch:
    """Calls that were made under the judge's clock, and whose results a world has vouched for."""

    trial: int
    calls: int
    us: float
    key: int
    digests: Digests

    def vouched(self, call: int, rank: int, outputs: list[Tensor]) -> bool:
        """Whether a result that was revealed, or a part of it, is what was digested."""
        pairs = zip(self.digests[rank][call], outputs, strict=False)
        alike = [digest(tensor, self.key) in known for known, tensor in pairs]
        return len(alike) == len(outputs) == len(self.digests[rank][call]) and all(alike)


def calls_for(claimed_us: float, room: int) -> int:
    """In the short stretch, for a claim and a device that has room for the arguments of so many calls."""
    return int(max(1, min(_MOST, room / _LONG, max(2.0, _LENGTH_US / max(claimed_us, 1.0)))))


def slope(side: Side, calls: int, spin_s: float, seen: Callable[[Stretch], None] = lambda stretch: None) -> Slope:
    """How long a call takes, drawing and digesting included. `seen` may ask for results while they are there."""
    spans: dict[int, list[float]] = {calls: [], _LONG * calls: []}
    for repeat in range(_REPEATS):
        for count, found in spans.items():
            stretch = _run(side, FIRST_STRETCH + 2 * repeat + (count > calls), count, spin_s)
            found.append(stretch.us)
            seen(stretch)
    short, long = (sorted(found) for found in spans.values())
    steps = (_LONG - 1) * calls
    return Slope((long[0] - short[0]) / steps, (long[1] - long[0] + short[1] - short[0]) / steps)


def _run(side: Side, trial: int, count: int, spin_s: float) -> Stretch:
    setup, seconds = side.setup, side.setup.limits.trial_s
    start = time.perf_counter()
    side.world.ask(
        lambda rank: {"do": "stretch", "spin_s": spin_s, **setup.drawing(side.seeds, trial, rank, count)},
        _PHASE,
        seconds,
    )
    key = side.seeds.of("digest", trial)
    answers = side.world.ask({"do": "digests", "key": key}, _PHASE, seconds)
    us = 1e6 * (time.perf_counter() - start)
    digests: Digests = []
    for rank, answer in enumerate(answers):
        try:
            digests.append([[[int(part) for part in leaf] for leaf in call] for call in answer["digests"]])
            if len(digests[-1]) != count:
                raise ValueError("digests")
        except FORGED as error:
            raise garbled(side.world, rank, _PHASE) from error
    return Stretch(trial, count, us, key, digests)


def check_claim(claimed_us: float, seen: Slope, harness: Slope, slack_us: float) -> None:
    """Raise unless the judge's clock bears out what the candidate's process claims."""
    taken = seen.us - harness.us
    if taken > _FACTOR * claimed_us + slack_us + seen.noise_us + harness.noise_us:
        raise Failure(
            Verdict.CHEAT,
            f"its own clock says {claimed_us:.1f} us per call, the judge's says {taken:.1f} us; "
            "all work of a call must be queued on the caller's stream before the call returns",
            check="outside-clock",
            claimed_us=claimed_us,
            seen_us=seen.us,
            harness_us=harness.us,
            noise_us=seen.noise_us,
        )
