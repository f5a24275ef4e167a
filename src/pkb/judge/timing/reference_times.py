"""Time a reference by itself, eager and compiled, by the same rounds of blocks that time candidates.

Modes are timed one after the other, each in turns with the eager reference: as many worlds are resident as when a
candidate is timed, so that blocks are as long, and large problems fit.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pkb.failure import Failure
from pkb.judge.correctness.orders import draw_inputs, start_reference
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import TIMED, Setup
from pkb.judge.timing.blocks import BlockPlan, TimedWorld, find_spread, run_rounds
from pkb.judge.timing.measure import open_baselines
from pkb.judge.worlds.pool import WorldPool
from pkb.judge.worlds.world import World
from pkb.protocol import messages as m
from pkb.protocol.compile_modes import EAGER
from pkb.settings import Rigor
from pkb.speedup import bootstrap_median, compare_blocks, compute_block_times, compute_call_time, is_steady

_WORLDS = 2
Times = dict[str, Any]
"""The times of one mode: microseconds and how they were taken, or why there are none."""


def time_reference(
    setup: Setup, pool: WorldPool, seeds: Seeds, rigor: Rigor, modes: Sequence[str]
) -> Iterator[tuple[str, Times]]:
    """Yield each mode and its times as soon as it is timed. Raises Failure if the eager reference cannot be timed."""
    waiting = list(modes)
    while waiting:
        with _open_eager(setup, pool, seeds, rigor) as eager:
            well = True
            while waiting and well:
                mode = waiting.pop(0)
                try:
                    times = _time_mode(mode, eager, pool, rigor)
                except Failure as failure:
                    if mode == EAGER or failure.evidence.check == "nursery":
                        raise
                    # The state of the ranks is unknown: start afresh.
                    times, well = {"failed": failure.reason}, False
                yield mode, times | {"rigor": rigor.name, "when": _now()}


@contextmanager
def _open_eager(setup: Setup, pool: WorldPool, seeds: Seeds, rigor: Rigor) -> Iterator[TimedWorld]:
    """Open a warm world of the reference as it is."""
    with start_reference(pool.take_reference(setup.world), setup) as world:
        plan = BlockPlan.of(world, setup, seeds, rigor, _WORLDS, _measure_result(world, setup, seeds))
        side = TimedWorld(EAGER, world, plan, setup, seeds)
        side.warm_up(rigor, setup.limits.trial_s)
        yield side
        world.end()


def _measure_result(world: World, setup: Setup, seeds: Seeds) -> int:
    """Make one call; return the bytes of its result."""
    draw_inputs(world, replace(setup, calls=1), seeds, TIMED)
    world.ask(m.WarmUp(1), "warm-up", setup.limits.trial_s)
    return max(answer.result_bytes for answer in world.ask(m.MeasureMemory(), "timing", setup.limits.trial_s))


def _time_mode(mode: str, eager: TimedWorld, pool: WorldPool, rigor: Rigor) -> Times:
    platform = eager.world.nursery.platform
    eager.forget()
    with ExitStack() as stack:
        sides, failed = open_baselines([] if mode == EAGER else [mode], eager, pool, rigor, stack)
        if failed:
            return {"failed": failed[mode]}
        before, both = platform.read_clocks(), [eager, *sides]
        for _ in run_rounds(both, rigor, lambda: all(is_steady(side.spans) for side in both)):
            pass
        clocks = {"before": before, "after": platform.read_clocks()}
        times = _describe_times(both[-1]) | {"clocks": clocks}
        for side in sides:
            times |= _compare_with_eager(eager, side)
            side.world.end()
        return times


def _describe_times(side: TimedWorld) -> Times:
    return {
        "us": compute_call_time(side.spans),
        "interval": bootstrap_median(compute_block_times(side.spans)),
        "calls_per_block": side.plan.calls,
        "warm_up_calls": side.warmed,
        "cache": side.plan.cache,
        "blocks_us": list(side.spans),
    }


def _compare_with_eager(eager: TimedWorld, side: TimedWorld) -> Times:
    """Return what the blocks of the eager reference, which took turns with this mode, add."""
    speedup, interval, pace = compare_blocks(eager.spans, side.spans, find_spread(eager, side))
    return {
        "compile_s": round(side.settling_s, 3),
        "eager_us": compute_call_time(eager.spans),
        "over_eager": {"speedup": speedup, "interval": interval, "pace": pace},
        "eager_blocks_us": list(eager.spans),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
