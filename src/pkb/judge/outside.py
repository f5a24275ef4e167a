"""The judge's own clock: a candidate's process may say anything about its time, but it cannot bend ours.

The judge waits for k calls and for 4k; the difference is 3k calls, without what starting and answering cost. An empty
call, made by the trusted reference world, shows what of it is harness.
"""

import time
from dataclasses import dataclass

from pkb.judge.failure import Failure
from pkb.judge.world import World
from pkb.record import Verdict

_REPEATS = 5
_LONG = 4
_FACTOR = 1.5
_LENGTH_US = 500.0
_FEWEST, _MOST = 2, 16
"""Calls in the short stretch: few enough for a launch queue to hold four times as many."""


@dataclass(frozen=True)
class Slope:
    """Microseconds per call."""

    us: float
    noise_us: float


def calls_for(claimed_us: float) -> int:
    return int(min(_MOST, max(_FEWEST, _LENGTH_US / max(claimed_us, 1.0))))


def slope(world: World, calls: int, spin_s: float, seconds: float, empty: bool = False) -> Slope:
    spans: dict[int, list[float]] = {calls: [], _LONG * calls: []}
    for _ in range(_REPEATS):
        for count, found in spans.items():
            start = time.perf_counter()
            order = {"do": "stretch", "count": count, "spin_s": spin_s, "empty": empty}
            world.ask(order, "timing by the judge's clock", seconds)
            found.append(1e6 * (time.perf_counter() - start))
    short, long = (sorted(found) for found in spans.values())
    steps = (_LONG - 1) * calls
    return Slope((long[0] - short[0]) / steps, (long[1] - long[0] + short[1] - short[0]) / steps)


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
