"""How fast: reference and candidate, both resident, take turns in timed blocks, so that drift hits both alike.

Nothing that the candidate's process claims is taken on trust: outputs of timed calls are checked, the judge's own
clock must agree, and no time may lie below the speed of light. `measure` runs the clocks; `conclude` checks the outputs
that were taken meanwhile, when no clock runs any more.
"""

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pkb.failure import Failure
from pkb.judge.correctness.orders import start_reference
from pkb.judge.correctness.reference import Reference
from pkb.judge.setup.setup import TIMED, Setup
from pkb.judge.timing.aa_control import Control
from pkb.judge.timing.blocks import BlockPlan, TimedWorld, find_spread, run_rounds
from pkb.judge.timing.clock_check import ClockCheck
from pkb.judge.timing.idle_check import IdleCheck
from pkb.judge.timing.judge_clock import confirm_ratio
from pkb.judge.timing.timed_samples import TimedSample, check_samples, choose_checked, take_sample
from pkb.judge.worlds.pool import WorldPool
from pkb.judge.worlds.world import World
from pkb.platforms import Platform
from pkb.record import BaselineTimes, Timing, Verdict
from pkb.settings import Rigor
from pkb.speedup import compare_blocks, compute_call_time, compute_skew, extend_interval, is_narrow

_COMPILING_S = 600.0
"""torch.compile may search for long."""


@dataclass(frozen=True)
class Measurement:
    """What the clocks showed, and outputs that are still to be checked."""

    control: Control
    ours: TimedWorld
    theirs: TimedWorld
    baselines: list[TimedWorld]
    failed: dict[str, str]
    """Baselines that could not be timed, and why."""
    samples: list[TimedSample]
    clocks: dict[str, Any]
    """The device's clock rates before and after."""
    judge_us: dict[str, float]
    """What the judge's own clock showed."""


def measure(
    candidate: World,
    control: Control,
    setup: Setup,
    expected: Reference,
    pool: WorldPool,
    baselines: Sequence[str] = (),
) -> Measurement:
    """Time a candidate that was right in all trials. Raises Failure when its times cannot be true."""
    platform, rigor = candidate.nursery.platform, control.rigor
    ours = control.ours.use_setup(setup)
    theirs = TimedWorld("candidate", candidate, ours.plan, setup, ours.seeds)
    largest = expected.find_largest_call()
    clock = ClockCheck(ours, theirs, largest)
    with ExitStack() as stack:
        theirs.settle(setup.limits.trial_s)
        clock.look_early()
        theirs.warm_up(rigor, setup.limits.trial_s)
        ours.use_shorter_plan(theirs.plan)
        extra, failed = open_baselines(baselines, ours, pool, rigor, stack)
        before = platform.read_clocks()
        samples = _take_turns([ours, *extra, theirs], rigor, largest, clock)
        clocks = {"before": before, "after": platform.read_clocks()}
        judge_us = clock.check()
        for side in extra:
            side.world.dismiss()
    checked = [*choose_checked(samples, rigor.checked_blocks), *clock.samples]
    return Measurement(control, ours, theirs, extra, failed, checked, clocks, judge_us)


def conclude(measured: Measurement, expected: Reference) -> Timing:
    """Check the sampled outputs against the reference, and compute the speed-up. Raises Failure when one is wrong."""
    check_samples(measured.samples, measured.ours, expected)
    measured.ours.world.dismiss()
    timing = _make_timing(measured.control, measured.ours, measured.theirs)
    if not measured.ours.world.nursery.platform.times_are_comparable:
        confirmed = confirm_ratio(timing.reference_us, measured.judge_us)
        timing = replace(timing, **extend_interval(timing, confirmed))
    timed = {side.name: _describe_baseline(side, measured.theirs) for side in measured.baselines}
    failed = {name: BaselineTimes(failed=reason) for name, reason in measured.failed.items()}
    return replace(
        timing,
        judge_clock_us=measured.judge_us,
        checked_calls=len(measured.samples),
        clocks=measured.clocks,
        baselines=timed | failed,
    )


def open_baselines(
    names: Sequence[str], ours: TimedWorld, pool: WorldPool, rigor: Rigor, stack: ExitStack
) -> tuple[list[TimedWorld], dict[str, str]]:
    """Return the warm worlds of the further baselines that work here; and why the others do not."""
    worlds: list[TimedWorld] = []
    failed: dict[str, str] = {}
    for name in names:
        taken = pool.take_reference(ours.world.size)
        world = stack.enter_context(start_reference(taken, ours.setup, compiled=name))
        timed = TimedWorld(name, world, ours.plan, ours.setup, ours.seeds)
        try:
            timed.warm_up(rigor, _COMPILING_S)
            worlds.append(timed)
        except Failure as failure:
            world.end(kill=True)
            failed[name] = failure.reason
    return worlds, failed


def _take_turns(worlds: list[TimedWorld], rigor: Rigor, largest: int, clock: ClockCheck) -> list[TimedSample]:
    """Time blocks until there are enough calls and the interval is narrow; return a result of the candidate from each.

    `largest` is the most bytes that one call returned in the trials.
    """
    ours, theirs = worlds[0], worlds[-1]
    samples, idle = [], IdleCheck(theirs.world)
    watch = {world.name: partial(idle.watch, world.world) for world in worlds if world is not theirs}
    for trial in run_rounds(worlds, rigor, lambda: is_narrow(ours.spans, theirs.spans), watch):
        samples.append(take_sample(theirs, trial, theirs.plan.calls, largest))
        clock.look_early()
    idle.check()
    return samples


def _make_timing(control: Control, ours: TimedWorld, theirs: TimedWorld) -> Timing:
    plan, platform = ours.plan, ours.world.nursery.platform
    times = {side.name: compute_call_time(side.spans) for side in (ours, theirs)}
    spread = find_spread(ours, theirs, controlled=bool(control.spans))
    speedup, interval, pace = compare_blocks(ours.spans, theirs.spans, spread, control.ratios)
    light = _find_speed_of_light(theirs.setup, plan, platform, times["candidate"])
    return Timing(
        method=f"{platform.name}: alternating blocks, {platform.clock_source}, slowest rank of each call",
        rigor=control.rigor.name,
        reference_us=times["reference"],
        candidate_us=times["candidate"],
        speedup=speedup,
        interval=interval,
        spread=spread,
        pace=pace,
        skew_us={side.name: compute_skew(side.spans) for side in (ours, theirs)},
        queued={side.name: statistics.mean(side.queued) for side in (ours, theirs)},
        calls_per_block=plan.calls,
        warm_up_calls={side.name: side.warmed for side in (ours, theirs)},
        cache=plan.cache,
        roofline_us=light,
        percent_of_roofline={name: 100 * light / us for name, us in times.items()} if light else {},
        control=control.describe(),
        judge_clock_us={},
        checked_calls=0,
        clocks={},
        baselines={},
        blocks_us={side.name: side.spans for side in (ours, theirs)},
    )


def _describe_baseline(side: TimedWorld, theirs: TimedWorld) -> BaselineTimes:
    us = compute_call_time(side.spans)
    speedup, interval, pace = compare_blocks(side.spans, theirs.spans, find_spread(side, theirs))
    return BaselineTimes(us=us, speedup=speedup, interval=interval, pace=pace, paired=True, blocks_us=side.spans)


def _find_speed_of_light(setup: Setup, plan: BlockPlan, platform: Platform, claimed_us: float) -> float | None:
    """Return the speed of light in microseconds, where the hardware is known; an impossible time is a CHEAT."""
    hardware = platform.find_hardware()
    if hardware is None:
        return None
    cases = [setup.case(rank, TIMED) for rank in range(setup.world)]
    floors = [setup.problem.compute_floor(case) for case in cases]
    floor_us = 1e6 * hardware.compute_floor(floors, platform.one_device, plan.cache_bytes)
    if claimed_us < floor_us:
        raise Failure(
            Verdict.CHEAT,
            f"{claimed_us:.1f} us per call is less than the {floor_us:.1f} us that {hardware.name} needs at the least; "
            "the work was not done inside the call",
            check="floor",
            claimed_us=claimed_us,
            floor_us=floor_us,
        )
    return setup.find_light_us(platform)
