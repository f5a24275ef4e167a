"""How fast: reference and candidate, both resident, take turns in timed blocks, so that drift hits both alike.

Nothing that the candidate's process claims is taken on trust: outputs of timed calls are checked, the judge's own
clock must agree, and no time may lie below the speed of light. `measure` runs the clocks; `conclude` checks the outputs
that were taken meanwhile, when no clock runs any more.
"""

import statistics
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pkb.failure import Failure
from pkb.judge.correctness.check import Wrong, check_facts, check_values
from pkb.judge.correctness.orders import start_reference
from pkb.judge.correctness.reference import Reference, compute_calls
from pkb.judge.correctness.results import Outputs, Result, fetch_tensors, hold_timed_results
from pkb.judge.setup.setup import TIMED, Setup
from pkb.judge.timing.aa_control import Control
from pkb.judge.timing.blocks import BlockPlan, TimedWorld, find_spread, run_rounds
from pkb.judge.timing.idle_check import IdleCheck
from pkb.judge.timing.judge_clock import (
    ATTEMPTS,
    ClockRun,
    Span,
    choose_calls,
    describe_false_claim,
    is_borne_out,
    list_trials,
    run_calls,
)
from pkb.judge.worlds.pool import WorldPool
from pkb.judge.worlds.rank_failures import describe_garbled_answer
from pkb.judge.worlds.world import World
from pkb.platforms import Platform
from pkb.record import BaselineTimes, Timing, Verdict
from pkb.settings import Rigor
from pkb.speedup import compare_blocks, compute_call_time, compute_skew, is_narrow
from pkb.trial import Trial

_PLAUSIBLE_GROWTH = 16
"""Results whose size depends on the inputs may be this many times larger than in any trial."""
_COMPILING_S = 600.0
"""torch.compile may search for long."""


@dataclass(frozen=True)
class TimedSample:
    """What one timed call returned, on every rank."""

    trial: Trial
    call: int
    results: list[Result]
    outputs: Outputs


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
    with ExitStack() as stack:
        theirs.warm_up(rigor, setup.limits.trial_s)
        extra, failed = open_baselines(baselines, ours, pool, rigor, stack)
        before = platform.read_clocks()
        samples = _take_turns([ours, *extra, theirs], rigor, expected.find_largest_call())
        clocks = {"before": before, "after": platform.read_clocks()}
        judge_us, more = _run_judge_clock(ours, theirs, rigor, expected.find_largest_call())
        for side in extra:
            side.world.dismiss()
    return Measurement(control, ours, theirs, extra, failed, [*samples, *more], clocks, judge_us)


def conclude(measured: Measurement, expected: Reference) -> Timing:
    """Check the sampled outputs against the reference, and compute the speed-up. Raises Failure when one is wrong."""
    for sample in measured.samples:
        _check_sample(sample, measured.ours, expected)
    measured.ours.world.dismiss()
    timing = _make_timing(measured.control, measured.ours, measured.theirs)
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


def _take_turns(worlds: list[TimedWorld], rigor: Rigor, largest: int) -> list[TimedSample]:
    """Time blocks until there are enough calls and the interval is narrow; return samples of the candidate's outputs.

    `largest` is the most bytes that one call returned in the trials.
    """
    ours, theirs = worlds[0], worlds[-1]
    least = rigor.least_blocks(ours.plan.calls)
    sampled = set(ours.seeds.random("sampled").sample(range(least), min(least, rigor.checked_blocks)))
    samples, idle = [], IdleCheck(theirs.world)
    watch = {world.name: partial(idle.watch, world.world) for world in worlds if world is not theirs}
    rounds = run_rounds(worlds, rigor, lambda: is_narrow(ours.spans, theirs.spans), watch)
    for number, trial in enumerate(rounds):
        if number in sampled:
            call = theirs.seeds.random("timed call", number).choice(theirs.kept)
            samples.append(_take_sample(theirs, trial, call, largest))
    idle.check()
    return samples


def _take_sample(theirs: TimedWorld, trial: Trial, call: int, largest: int) -> TimedSample:
    """Fetch what a call of the block, or of the judge's run, that has just ended returned."""
    seconds = theirs.setup.limits.trial_s
    results = hold_timed_results(theirs.world, call, seconds)
    for result in results:
        # Before a byte is read, as the judge has no expected shapes yet.
        if sum(leaf.nbytes for leaf in result.leaves) > _PLAUSIBLE_GROWTH * max(largest, 1 << 20):
            raise describe_garbled_answer(theirs.world.blame, result.rank, "hand over its timed results")
    outputs = fetch_tensors(theirs.world, theirs.setup, theirs.seeds, trial, results, first=call)
    return TimedSample(trial, call, results, outputs)


def _check_sample(sample: TimedSample, ours: TimedWorld, expected: Reference) -> None:
    one, trial = replace(ours.setup, calls=1), sample.trial
    right = Reference(compute_calls(ours.world, one, ours.seeds, trial, first=sample.call)).pool_errors(expected)
    try:
        check_facts(sample.results, right, trial)
        check_values(sample.results, sample.outputs, right, trial)
    except Wrong as wrong:
        said = wrong.reason.replace(f"{trial}, call 0", f"{trial}, call {sample.call}")
        evidence = replace(wrong.evidence, check=f"timed-{wrong.evidence.check}")
        raise Wrong(f"{said}; it was right in the trials", wrong.outputs, evidence=evidence) from None


def _run_judge_clock(
    ours: TimedWorld, theirs: TimedWorld, rigor: Rigor, largest: int
) -> tuple[dict[str, float], list[TimedSample]]:
    """Return what the judge's clock shows, and samples of what the candidate returned meanwhile."""
    claimed, trusted = compute_call_time(theirs.spans), compute_call_time(ours.spans)
    slack_us = ours.world.nursery.platform.clock_slack_us
    samples: list[TimedSample] = []
    for world in (ours, theirs):
        # Processor time that the candidate uses on the reference's core would count as the harness's own time.
        world.pin(False)
    for attempt in range(ATTEMPTS):
        whole, seen, more = _attempt_judge_clock(ours, theirs, rigor, claimed, attempt, largest)
        samples += more
        harness = Span(whole.us - trusted, whole.noise_us)
        if is_borne_out(claimed, seen, harness, slack_us):
            return {"candidate": seen.us, "harness": harness.us, "noise": seen.noise_us}, samples
    raise describe_false_claim(claimed, seen, harness)


def _attempt_judge_clock(
    ours: TimedWorld, theirs: TimedWorld, rigor: Rigor, claimed_us: float, attempt: int, largest: int
) -> tuple[Span, Span, list[TimedSample]]:
    """Run both worlds under the judge's clock in turns; some results of the candidate are sampled."""
    trials = list_trials(claimed_us, attempt)
    chosen = theirs.seeds.random("revealed", attempt).sample(trials, min(len(trials), rigor.checked_blocks))
    idle, samples = IdleCheck(theirs.world), []
    runs: dict[str, list[ClockRun]] = {ours.name: [], theirs.name: []}
    for trial in trials:
        calls = choose_calls(claimed_us, ours.plan.room, runs[ours.name], runs[theirs.name])
        # Longer than the host needs, as in a timed block calls are also marked and memory is poisoned.
        spin_s = max(world.find_spin(calls) for world in (ours, theirs))
        for world in (ours, theirs) if trial.index % 2 else (theirs, ours):
            with idle.watch(ours.world) if world is ours else nullcontext():
                runs[world.name].append(run_calls(world, trial, calls, spin_s))
        if trial in chosen:
            samples.append(_reveal(runs[theirs.name][-1], theirs, largest))
    idle.check()
    return Span.of(runs[ours.name]), Span.of(runs[theirs.name]), samples


def _reveal(run: ClockRun, theirs: TimedWorld, largest: int) -> TimedSample:
    """Fetch one result of a run that has just ended, and hold it against its digest."""
    call = theirs.seeds.random("revealed", run.trial.kind, run.trial.index).randrange(run.calls)
    sample = _take_sample(theirs, run.trial, call, largest)
    for (_, rank), outputs in sample.outputs.items():
        if not run.is_vouched(call, rank, outputs):
            raise Failure(
                Verdict.CHEAT,
                f"rank {rank} handed over another result than it had when the judge's clock stopped; "
                "finish inside the call",
                check="outside-clock",
                rank=rank,
            )
    return sample


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
