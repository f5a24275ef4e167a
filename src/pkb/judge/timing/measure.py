"""How fast: reference and candidate, both resident, take turns in timed blocks, so that drift hits both alike.

Nothing that the candidate's process claims is taken on trust: outputs of timed calls are checked, the judge's own
clock must agree, and no time may lie below the speed of light.
"""

import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pkb.failure import Failure
from pkb.judge.correctness.check import Wrong, check_facts, check_values
from pkb.judge.correctness.reference import Reference, as_reference, expected_calls
from pkb.judge.correctness.results import Outputs, Result, handed_over, kept_results
from pkb.judge.setup.setup import FIRST_TIMED_TRIAL, Setup
from pkb.judge.timing.aa_control import Control
from pkb.judge.timing.blocks import Plan, Side, rounds, spread_between
from pkb.judge.timing.idle_check import Idleness
from pkb.judge.timing.judge_clock import (
    STRETCHES,
    Span,
    Stretch,
    calls_for,
    is_borne_out,
    not_borne_out,
    spans,
    trials_for,
)
from pkb.judge.worlds.pool import Spares
from pkb.judge.worlds.world import World, garbled
from pkb.platforms import Platform
from pkb.record import Verdict
from pkb.settings import Rigor
from pkb.speedup import Timing, compared, is_narrow, skew, typical

_PLAUSIBLE_GROWTH = 16
"""Results whose size depends on the inputs may be so much larger than in any trial."""
_COMPILING_S = 600.0
"""torch.compile may search for long."""


def measure(
    candidate: World,
    control: Control,
    setup: Setup,
    expected: Reference,
    spares: Spares,
    baselines: Sequence[str] = (),
    quiet_is_over: Callable[[], None] = lambda: None,
) -> Timing:
    """Time a candidate that was right in all trials. Raises Failure when a timed call is wrong or cannot be true.

    `quiet_is_over` is called when no clock runs any more, and the candidate is not needed any longer.
    """
    platform, rigor = candidate.nursery.platform, control.rigor
    ours = control.ours.posing(setup)
    with ExitStack() as stack:
        theirs = Side("candidate", candidate, ours.plan, setup, ours.seeds)
        theirs.warm_up(rigor, setup.limits.trial_s)
        extra, failed = compiled_sides(baselines, ours, spares, rigor, stack)
        before = platform.clocks()
        samples = _take_turns([ours, *extra, theirs], rigor, expected.largest_call())
        clocks = {"before": before, "after": platform.clocks()}
        outside, more = _by_our_clock(ours, theirs, rigor, expected.largest_call())
        samples += more
        # All of the device's memory is the reference's now: its oracle needs several times what a call does.
        candidate.let_go()
        quiet_is_over()
        for side in extra:
            side.world.dismiss()
        for sample in samples:
            _check(sample, ours, expected)
        ours.world.dismiss()
    timing = _timing(control, ours, theirs)
    table = {side.name: _baseline(side, theirs) for side in extra} | failed
    return replace(timing, outside_us=outside, checked_calls=len(samples), clocks=clocks, baselines=table)


def compiled_sides(
    names: Sequence[str], ours: Side, spares: Spares, rigor: Rigor, stack: ExitStack
) -> tuple[list[Side], dict[str, dict[str, Any]]]:
    """The further baselines that work here; and why the others do not."""
    sides: list[Side] = []
    failed: dict[str, dict[str, Any]] = {}
    for name in names:
        world = stack.enter_context(as_reference(spares.take(ours.world.size), ours.setup, compiled=name))
        side = Side(name, world, ours.plan, ours.setup, ours.seeds)
        try:
            side.warm_up(rigor, _COMPILING_S)
            sides.append(side)
        except Failure as failure:
            world.end(kill=True)
            failed[name] = {"failed": failure.reason}
    return sides, failed


@dataclass(frozen=True)
class Sample:
    """What one timed call returned, on every rank."""

    trial: int
    call: int
    results: list[Result]
    outputs: Outputs


def _take_turns(sides: list[Side], rigor: Rigor, largest: int) -> list[Sample]:
    """Blocks until there are enough calls and the interval is narrow; some of what the candidate returned.

    `largest` is how many bytes one call returned in the trials, at the most.
    """
    ours, theirs = sides[0], sides[-1]
    least = rigor.least_blocks(ours.plan.calls)
    sampled = set(ours.seeds.random("sampled").sample(range(least), min(least, rigor.checked_blocks)))
    samples, idle = [], Idleness(theirs.world)
    watched = {side.name: partial(idle.watched, side.world) for side in sides if side is not theirs}
    for pair in rounds(sides, rigor, lambda: is_narrow(ours.spans, theirs.spans), watched):
        if pair in sampled:
            call = theirs.seeds.random("timed call", pair).choice(theirs.kept)
            samples.append(_sample(theirs, FIRST_TIMED_TRIAL + pair + 1, call, largest))
    idle.check()
    return samples


def _sample(theirs: Side, trial: int, call: int, largest: int) -> Sample:
    """What a call of the block or stretch that has just run returned."""
    seconds = theirs.setup.limits.trial_s
    results = kept_results(theirs.world, call, seconds)
    for result in results:
        # Before a byte is read, as the judge has no expected shapes yet.
        if sum(leaf.nbytes for leaf in result.leaves) > _PLAUSIBLE_GROWTH * max(largest, 1 << 20):
            raise garbled(theirs.world, result.rank, "hand over its timed results")
    outputs = handed_over(theirs.world, theirs.setup, theirs.seeds, trial, results, first=call)
    return Sample(trial, call, results, outputs)


def _check(sample: Sample, ours: Side, expected: Reference) -> None:
    one, trial = replace(ours.setup, calls=1), sample.trial
    right = Reference(expected_calls(ours.world, one, ours.seeds, trial, first=sample.call)).pooled(expected)
    try:
        check_facts(sample.results, right, trial)
        check_values(sample.results, sample.outputs, right, trial)
    except Wrong as wrong:
        said = wrong.reason.replace(f"trial {trial}, call 0", f"timed block {trial}, call {sample.call}")
        evidence = wrong.evidence | {"check": f"timed-{wrong.evidence['check']}"}
        raise Wrong(f"{said}; it was right in the trials", wrong.outputs, **evidence) from None


def _by_our_clock(ours: Side, theirs: Side, rigor: Rigor, largest: int) -> tuple[dict[str, float], list[Sample]]:
    """What the judge's clock says, and some of what the candidate returned meanwhile."""
    claimed, trusted = typical(theirs.spans), typical(ours.spans)
    slack_us = ours.world.nursery.platform.clock_slack_us
    samples: list[Sample] = []
    for side in (ours, theirs):
        # What the candidate could burn of the reference's core would count as the harness's own time.
        side.pin(False)

    def reveal(stretch: Stretch) -> None:
        if stretch.trial in chosen:
            call = theirs.seeds.random("revealed", stretch.trial).randrange(stretch.calls)
            samples.append(_revealed(stretch, theirs, call, largest))

    for stretches in STRETCHES:
        trials = trials_for(claimed, stretches)
        chosen = theirs.seeds.random("revealed", trials.start).sample(trials, min(len(trials), rigor.checked_blocks))
        idle = Idleness(theirs.world)
        watched = partial(idle.watched, ours.world)
        whole, seen = spans(ours, theirs, calls_for(claimed, ours.plan.room), trials, reveal, watched)
        idle.check()
        harness = Span(whole.us - trusted, whole.noise_us)
        if is_borne_out(claimed, seen, harness, slack_us):
            return {"candidate": seen.us, "harness": harness.us, "noise": seen.noise_us}, samples
    raise not_borne_out(claimed, seen, harness)


def _revealed(stretch: Stretch, theirs: Side, call: int, largest: int) -> Sample:
    sample = _sample(theirs, stretch.trial, call, largest)
    for (_, rank), outputs in sample.outputs.items():
        if not stretch.vouched(call, rank, outputs):
            raise Failure(
                Verdict.CHEAT,
                f"rank {rank} handed over another result than it had when the judge's clock stopped; "
                "finish inside the call",
                check="outside-clock",
                rank=rank,
            )
    return sample


def _timing(control: Control, ours: Side, theirs: Side) -> Timing:
    plan, platform = ours.plan, ours.world.nursery.platform
    times = {side.name: typical(side.spans) for side in (ours, theirs)}
    spread = spread_between(ours, theirs, controlled=bool(control.spans))
    speedup, interval, pace = compared(ours.spans, theirs.spans, spread, control.ratios)
    light = _speed_of_light(theirs.setup, plan, platform, times["candidate"])
    return Timing(
        method=f"{platform.name}: alternating blocks, {platform.clock_source}, slowest rank of each call",
        rigor=control.rigor.name,
        reference_us=times["reference"],
        candidate_us=times["candidate"],
        speedup=speedup,
        interval=interval,
        spread=spread,
        pace=pace,
        skew_us={side.name: skew(side.spans) for side in (ours, theirs)},
        queued={side.name: statistics.mean(side.queued) for side in (ours, theirs)},
        calls_per_block=plan.calls,
        warm_up_calls={side.name: side.warmed for side in (ours, theirs)},
        cache=plan.cache,
        roofline_us=light,
        percent_of_roofline={name: 100 * light / us for name, us in times.items()} if light else {},
        control=control.facts(),
        outside_us={},
        checked_calls=0,
        clocks={},
        baselines={},
        blocks_us={side.name: side.spans for side in (ours, theirs)},
    )


def _baseline(side: Side, theirs: Side) -> dict[str, Any]:
    us = typical(side.spans)
    speedup, interval, pace = compared(side.spans, theirs.spans, spread_between(side, theirs))
    return {"us": us, "speedup": speedup, "interval": interval, "pace": pace, "paired": True, "blocks_us": side.spans}


def _speed_of_light(setup: Setup, plan: Plan, platform: Platform, claimed_us: float) -> float | None:
    """In microseconds, where we know the hardware; a time that no hardware allows is a CHEAT."""
    hardware = platform.hardware()
    if hardware is None:
        return None
    cases = [setup.case(rank, FIRST_TIMED_TRIAL) for rank in range(setup.world)]
    floors = [setup.problem.floor(case) for case in cases]
    floor_us = 1e6 * hardware.floor(floors, platform.one_device, plan.cache_bytes)
    if claimed_us < floor_us:
        raise Failure(
            Verdict.CHEAT,
            f"{claimed_us:.1f} us per call is less than the {floor_us:.1f} us that {hardware.name} needs at the least; "
            "the work was not done inside the call",
            check="floor",
            claimed_us=claimed_us,
            floor_us=floor_us,
        )
    return setup.light_us(platform)
