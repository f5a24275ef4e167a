"""The judge's own clock: a candidate's process may say anything about its time, but it cannot bend ours.

The judge orders stretches of calls: inputs that nobody could know are drawn, the calls made, and all results digested
under a key that is told when they are said to be done. The trusted reference world does the same in turn, which shows
what drawing and digesting take. Some of what was digested is revealed afterwards, and must be right.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from torch import Tensor

from pkb.failure import Failure
from pkb.judge.setup.setup import FIRST_STRETCH
from pkb.judge.timing.blocks import Side
from pkb.judge.worlds.world import garbled
from pkb.protocol.channel import FORGED
from pkb.protocol.digest import digest
from pkb.record import Verdict

_REPEATS, _REPEATS_OF_LONG = 6, 3
_FACTOR = 1.5
_LENGTH_US, _LONG_US = 2000.0, 1000.0
"""Of a stretch; and of a call beside which a host's hesitation hardly counts."""
_LEAST, _MOST = 2, 64
"""Calls in a stretch: few enough for a launch queue to hold them."""
STRETCHES = [range(FIRST_STRETCH + k * _REPEATS, FIRST_STRETCH + (k + 1) * _REPEATS) for k in range(3)]
"""Their numbers as trials. Before a candidate is accused, the judge looks again: its host may have had other things to
do, where the reference's had not."""
_PHASE = "timing by the judge's clock"

Digests = list[list[list[list[int]]]]
"""Of every result: by rank, call, leaf and part."""


@dataclass(frozen=True)
class Span:
    """Microseconds per call, in the shortest of several stretches, and how much longer the next one was."""

    us: float
    noise_us: float

    @classmethod
    def of(cls, stretches: "list[Stretch]") -> "Span":
        first, second = sorted(stretch.us / stretch.calls for stretch in stretches)[:2]
        return cls(first, second - first)


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
    """In a stretch, for a claim and a device that has room for the arguments of so many calls."""
    return int(max(1, min(room, _MOST, max(_LEAST, _LENGTH_US / max(claimed_us, 1.0)))))


def trials_for(claimed_us: float, trials: range) -> range:
    """As many of these as a claim needs."""
    return trials if claimed_us < _LONG_US else trials[:_REPEATS_OF_LONG]


def spans(
    ours: Side,
    theirs: Side,
    calls: int,
    trials: range,
    seen: Callable[[Stretch], None],
    watched: Callable[[], AbstractContextManager[None]],
) -> tuple[Span, Span]:
    """How long a call takes on either side, drawing and digesting included.

    `seen` may ask for results of a stretch of theirs while they are there; our own are `watched`.
    """
    # Longer than the host needs, as in a timed block calls are also marked and memory is poisoned.
    spin_s = max(side.spin_for(calls) for side in (ours, theirs))
    found: dict[str, list[Stretch]] = {ours.name: [], theirs.name: []}
    for trial in trials:
        for side in (ours, theirs) if trial % 2 else (theirs, ours):
            with watched() if side is ours else nullcontext():
                found[side.name].append(_run(side, trial, calls, spin_s))
        seen(found[theirs.name][-1])
    return Span.of(found[ours.name]), Span.of(found[theirs.name])


def _run(side: Side, trial: int, count: int, spin_s: float) -> Stretch:
    setup, seconds = side.setup, side.setup.limits.trial_s
    orders = [setup.drawing(side.seeds, trial, rank, count) for rank in range(side.world.size)]
    start = time.perf_counter()
    side.world.ask(lambda rank: {"do": "stretch", "spin_s": spin_s, **orders[rank]}, _PHASE, seconds)
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


def is_borne_out(claimed_us: float, seen: Span, harness: Span, slack_us: float) -> bool:
    """Whether the judge's clock agrees with what the candidate's process claims."""
    return seen.us - harness.us <= _FACTOR * claimed_us + slack_us + seen.noise_us + harness.noise_us


def not_borne_out(claimed_us: float, seen: Span, harness: Span) -> Failure:
    return Failure(
        Verdict.CHEAT,
        f"its own clock says {claimed_us:.1f} us per call, the judge's says {seen.us - harness.us:.1f} us; "
        "all work of a call must be queued on the caller's stream before the call returns",
        check="outside-clock",
        claimed_us=claimed_us,
        seen_us=seen.us,
        harness_us=harness.us,
        noise_us=seen.noise_us,
    )
