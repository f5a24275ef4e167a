"""The judge's own clock: a candidate's process may report any time, but it cannot change the judge's clock.

The judge orders runs of calls: inputs that nobody could know are drawn, the calls made, and all results digested under
a key that is sent when the calls are said to be done. The trusted reference world does the same in turn, which shows
how long drawing and digesting take. Of every run one result is fetched afterwards: it must be what was digested, and
right. What counts is a typical run, so that being lazy in a few of them gains nothing.
"""

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from pkb.failure import Failure
from pkb.judge.correctness.orders import PosedCalls
from pkb.judge.setup.seeds import Seeds
from pkb.judge.timing.blocks import TimedWorld
from pkb.judge.worlds.rank_failures import describe_garbled_answer
from pkb.protocol import messages as m
from pkb.protocol.digest import digest_one
from pkb.record import Verdict
from pkb.trial import Trial, TrialKind

_REPEATS, _REPEATS_OF_LONG = 6, 3
_FACTOR = 1.5
_NOISE_FACTOR, _NOISE_CAP = 4.0, 0.5
"""Of the typical deviations of both worlds, what is allowed for; at the most this share of the claim, or of what the
harness needs if that is more. A candidate that varies on purpose gains no more."""
_OVERWHELMING, _OVERWHELMING_US = (math.inf, 100.0, 10.0), 250_000.0
"""How many times what is allowed must be exceeded in all of one, two, or three and more runs to end the matter; and how
much longer than the reference's each of them must have been: short runs may as well be repeated."""
_LEAST_SHARE = 0.75
"""Of the planned calls of a run, the judge's secret takes at least this share."""
_LENGTH_US, _LONG_US = 2000.0, 1000.0
"""The planned length of a run; and the length of a call from which the host's jitter hardly counts."""
LEAST_CALLS, _FIRST, _MOST = 2, 8, 64
"""Calls in a run: at least, in the first run, and at most, so that a launch queue holds them."""
_OVERLONG = 4.0
"""A run that takes this many times the planned length more than the reference's is followed by short ones."""
ATTEMPTS = 3
"""Before a candidate is accused, the judge looks again: its host may have been busy where the reference's was not."""
_PHASE = "timing by the judge's clock"


@dataclass(frozen=True)
class Span:
    """Microseconds per call in a typical run, and the typical deviation from it."""

    us: float
    noise_us: float

    @classmethod
    def of(cls, runs: "Sequence[ClockRun]") -> "Span":
        found = [run.us / run.calls for run in runs]
        typical = statistics.median(found)
        return cls(typical, statistics.median(abs(us - typical) for us in found))


@dataclass(frozen=True)
class ClockRun:
    """Calls that were made under the judge's clock, and the digests of their results."""

    trial: Trial
    calls: int
    us: float
    key: int
    digests: list[list[list[list[int]]]]
    """By rank, call, leaf and part."""

    def is_vouched(self, call: int, rank: int, outputs: list[Tensor]) -> bool:
        """Whether a result that was fetched later, or a part of it, is what was digested."""
        pairs = zip(self.digests[rank][call], outputs, strict=False)
        alike = [digest_one(tensor, self.key) in known for known, tensor in pairs]
        return len(alike) == len(outputs) == len(self.digests[rank][call]) and all(alike)


def list_trials(claimed_us: float, attempt: int) -> list[Trial]:
    """Return the trials of one attempt: fewer for long calls."""
    count = _REPEATS if claimed_us < _LONG_US else _REPEATS_OF_LONG
    return [Trial(TrialKind.CLOCK, attempt * _REPEATS + k) for k in range(count)]


def vary_calls(planned: int, seeds: Seeds, trial: Trial) -> int:
    """Return a number of calls that nobody can foresee, and that is not much less than planned."""
    least = max(min(planned, LEAST_CALLS), math.ceil(_LEAST_SHARE * planned))
    return seeds.random("calls of a run", trial.index).randint(least, planned)


def choose_calls(claimed_us: float, room: int, ours: Sequence[ClockRun], theirs: Sequence[ClockRun]) -> int:
    """Return how many calls to plan for one run, given the claimed time, the most that fit, and earlier runs."""
    planned = int(max(1, min(room, _MOST, max(LEAST_CALLS, _LENGTH_US / max(claimed_us, 1.0)))))
    if not theirs:
        return min(planned, _FIRST)
    excess_us = max((their.us - our.us) / their.calls for our, their in zip(ours, theirs, strict=True))
    is_overlong = planned * excess_us > _OVERLONG * max(_LENGTH_US, planned * claimed_us)
    return min(planned, LEAST_CALLS) if is_overlong else planned


def run_calls(world: TimedWorld, trial: Trial, count: int, spin_s: float) -> ClockRun:
    """Make `count` calls and digest their results under the judge's clock."""
    seconds = world.setup.limits.trial_s
    posed = PosedCalls.of(world.setup, world.seeds, [(trial, call) for call in range(count)])
    orders = [posed.make_order(m.RunUntimed, rank, spin_s=spin_s) for rank in range(world.world.size)]
    tensors = posed.tensors
    start = time.perf_counter()
    world.world.send(lambda rank: orders[rank], tensors)
    world.world.collect(m.RunUntimed, _PHASE, seconds)
    key = world.seeds.of("digest", trial.kind, trial.index)
    answers: list[m.DigestList] = world.world.ask(m.DigestResults(key), _PHASE, seconds)
    us = 1e6 * (time.perf_counter() - start)
    for rank, answer in enumerate(answers):
        if len(answer.digests) != count:
            raise describe_garbled_answer(world.world.blame, rank, _PHASE)
    return ClockRun(trial, count, us, key, [answer.digests for answer in answers])


def is_borne_out(claimed_us: float, seen: Span, harness: Span, slack_us: float) -> bool:
    """Whether the judge's clock agrees with the time that the candidate's process claims."""
    return seen.us - harness.us <= _find_allowance(claimed_us, seen, harness, slack_us)


def is_overwhelming(claimed_us: float, harness: Span, slack_us: float, runs: "Sequence[ClockRun]") -> bool:
    """Whether all runs of a candidate took so much longer than it claims that no further look can change that."""
    factor = _OVERWHELMING[min(len(runs), len(_OVERWHELMING)) - 1]
    most_us = factor * _find_allowance(claimed_us, Span(0.0, math.inf), harness, slack_us)
    excesses_us = [run.us / run.calls - harness.us for run in runs]
    are_long = all(run.calls * us > _OVERWHELMING_US for run, us in zip(runs, excesses_us, strict=True))
    return are_long and min(excesses_us) > most_us


def confirm_ratio(reference_us: float, seen_us: dict[str, float]) -> float:
    """Return the least speed-up over a reference of `reference_us` that agrees with what the judge's clock showed."""
    most_us = seen_us["candidate"] - seen_us["harness"] + _NOISE_FACTOR * seen_us["noise"]
    return reference_us / most_us if most_us > 0 else math.inf


def _find_allowance(claimed_us: float, seen: Span, harness: Span, slack_us: float) -> float:
    noise_us = _NOISE_FACTOR * (seen.noise_us + harness.noise_us)
    return _FACTOR * claimed_us + slack_us + min(noise_us, _NOISE_CAP * max(claimed_us, harness.us))


def describe_false_claim(claimed_us: float, seen: Span, harness: Span) -> Failure:
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
