"""Holds what a candidate's process claims against the judge's own clock."""

from contextlib import nullcontext

from pkb.failure import Failure
from pkb.judge.timing.blocks import TimedWorld
from pkb.judge.timing.idle_check import IdleCheck
from pkb.judge.timing.judge_clock import (
    ATTEMPTS,
    LEAST_CALLS,
    ClockRun,
    Span,
    choose_calls,
    describe_false_claim,
    is_borne_out,
    is_overwhelming,
    list_trials,
    run_calls,
    vary_calls,
)
from pkb.judge.timing.timed_samples import TimedSample, take_sample
from pkb.record import Verdict
from pkb.speedup import compute_call_time
from pkb.trial import Trial

_LOOKS = 3
"""How often the judge looks before all blocks are timed."""
_UNCLAIMED_US, _UNCLAIMED_CALLS = 20_000.0, 4.0
"""Time per call beyond the reference's, in microseconds and in claimed calls, that passes in a block unclaimed, from
which on the judge looks at once."""


class ClockCheck:
    def __init__(self, ours: TimedWorld, theirs: TimedWorld, largest: int):
        self._ours, self._theirs, self._largest = ours, theirs, largest
        """The last is the most bytes that one call returned in the trials."""
        self._attempts, self._looks = 0, _LOOKS
        self.samples: list[TimedSample] = []
        """A result of each run, which has to be right."""

    def look_early(self) -> None:
        """Check the claim now if far more time passes in blocks than is claimed: a cheat must not cost minutes.

        A host may have been busy, and nobody is accused without the same care as at the end.
        """
        claimed_us = self._theirs.last_us
        most_us = self._ours.unclaimed_us + _UNCLAIMED_US + _UNCLAIMED_CALLS * claimed_us
        if self._looks and self._theirs.unclaimed_us > most_us:
            self._looks -= 1
            self._check(claimed_us, LEAST_CALLS)
            for world in (self._ours, self._theirs):
                world.pin(True)

    def check(self) -> dict[str, float]:
        """Raise CHEAT if the claim is false; return what the judge's clock showed."""
        return self._check(compute_call_time(self._theirs.spans), self._ours.plan.most_calls)

    def _check(self, claimed_us: float, most_calls: int) -> dict[str, float]:
        trusted_us = compute_call_time(self._ours.spans) if self._ours.spans else self._ours.warm_us
        for world in (self._ours, self._theirs):
            # Processor time that the candidate uses on the reference's core would count as the harness's own time.
            world.pin(False)
        for _ in range(ATTEMPTS):
            seen, harness = self._attempt(claimed_us, trusted_us, most_calls)
            if is_borne_out(claimed_us, seen, harness, self._slack_us):
                return {"candidate": seen.us, "harness": harness.us, "noise": seen.noise_us}
        raise describe_false_claim(claimed_us, seen, harness)

    @property
    def _slack_us(self) -> float:
        return self._ours.world.nursery.platform.clock_slack_us

    def _attempt(self, claimed_us: float, trusted_us: float, most_calls: int) -> tuple[Span, Span]:
        """Run both worlds under the judge's clock in turns; return the candidate's time, and the harness's own."""
        idle = IdleCheck(self._theirs.world)
        ours: list[ClockRun] = []
        theirs: list[ClockRun] = []
        for trial in list_trials(claimed_us, self._attempts):
            planned = choose_calls(claimed_us, most_calls, ours, theirs)
            self._run(trial, vary_calls(planned, self._theirs.seeds, trial), ours, theirs, idle)
            self.samples.append(self._reveal(theirs[-1]))
            whole = Span.of(ours)
            harness = Span(whole.us - trusted_us, whole.noise_us)
            if is_overwhelming(claimed_us, harness, self._slack_us, theirs):
                raise describe_false_claim(claimed_us, Span.of(theirs), harness)
        self._attempts += 1
        idle.check()
        return Span.of(theirs), harness

    def _run(self, trial: Trial, calls: int, ours: list[ClockRun], theirs: list[ClockRun], idle: IdleCheck) -> None:
        # Longer than the host needs, as in a timed block calls are also marked and memory is poisoned.
        spin_s = max(world.find_spin(calls) for world in (self._ours, self._theirs))
        turns = [(self._ours, ours), (self._theirs, theirs)]
        for world, runs in turns if trial.index % 2 else reversed(turns):
            with idle.watch(world.world) if world is self._ours else nullcontext():
                runs.append(run_calls(world, trial, calls, spin_s))

    def _reveal(self, run: ClockRun) -> TimedSample:
        """Fetch one result of a run that has just ended, and hold it against its digest."""
        sample = take_sample(self._theirs, run.trial, run.calls, self._largest)
        for (_, rank), outputs in sample.outputs.items():
            if not run.is_vouched(sample.call, rank, outputs):
                raise Failure(
                    Verdict.CHEAT,
                    f"rank {rank} handed over another result than it had when the judge's clock stopped; "
                    "finish inside the call",
                    check="outside-clock",
                    rank=rank,
                )
        return sample
