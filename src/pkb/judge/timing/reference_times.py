"""How fast a reference is by itself, eager and compiled, by the same rounds of blocks that time candidates.

Modes are timed one after the other, each in turns with the eager reference: as many worlds are resident as when a
candidate is timed, so that blocks are as long, and large problems fit.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pkb.failure import Failure
from pkb.judge.correctness.reference import as_reference
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import FIRST_TIMED_TRIAL, Setup
from pkb.judge.timing.blocks import Plan, Side, rounds, spread_between
from pkb.judge.timing.measure import compiled_sides
from pkb.judge.worlds.pool import Spares
from pkb.judge.worlds.world import World
from pkb.protocol.compile_modes import EAGER
from pkb.settings import Rigor
from pkb.speedup import block_times, bootstrap, compared, is_steady, typical

_WORLDS = 2
Times = dict[str, Any]
"""Of one mode: microseconds and how they were taken, or why there are none."""


def reference_times(
    setup: Setup, spares: Spares, seeds: Seeds, rigor: Rigor, modes: Sequence[str]
) -> Iterator[tuple[str, Times]]:
    """Each mode as soon as it is timed. Raises Failure where not even the eager reference can be."""
    waiting = list(modes)
    while waiting:
        with _eager(setup, spares, seeds, rigor) as eager:
            well = True
            while waiting and well:
                mode = waiting.pop(0)
                try:
                    times = _timed(mode, eager, spares, rigor)
                except Failure as failure:
                    if mode == EAGER or failure.evidence.get("check") == "nursery":
                        raise
                    # Who knows what state the ranks are in: start afresh.
                    times, well = {"failed": failure.reason}, False
                yield mode, times | {"rigor": rigor.name, "when": _now()}


@contextmanager
def _eager(setup: Setup, spares: Spares, seeds: Seeds, rigor: Rigor) -> Iterator[Side]:
    """The reference as it is, warm."""
    with as_reference(spares.take(setup.world), setup) as world:
        plan = Plan.of(world, setup, seeds, rigor, _WORLDS, _result_bytes(world, setup, seeds))
        side = Side(EAGER, world, plan, setup, seeds)
        side.warm_up(rigor, setup.limits.trial_s)
        yield side
        world.end()


def _result_bytes(world: World, setup: Setup, seeds: Seeds) -> int:
    """Of one call, which is made to see."""
    replace(setup, calls=1).prepare(world, seeds, FIRST_TIMED_TRIAL)
    world.ask({"do": "warm", "count": 1}, "warm-up", setup.limits.trial_s)
    return max(answer["result_bytes"] for answer in world.ask({"do": "weigh"}, "timing", setup.limits.trial_s))


def _timed(mode: str, eager: Side, spares: Spares, rigor: Rigor) -> Times:
    platform = eager.world.nursery.platform
    eager.forget()
    with ExitStack() as stack:
        sides, failed = compiled_sides([] if mode == EAGER else [mode], eager, spares, rigor, stack)
        if failed:
            return failed[mode]
        before, both = platform.clocks(), [eager, *sides]
        for _ in rounds(both, rigor, lambda: all(is_steady(side.spans) for side in both)):
            pass
        clocks = {"before": before, "after": platform.clocks()}
        times = _of_one(both[-1]) | {"clocks": clocks}
        for side in sides:
            times |= _beside(eager, side)
            side.world.end()
        return times


def _of_one(side: Side) -> Times:
    return {
        "us": typical(side.spans),
        "interval": bootstrap(block_times(side.spans)),
        "calls_per_block": side.plan.calls,
        "warm_up_calls": side.warmed,
        "cache": side.plan.cache,
        "blocks_us": list(side.spans),
    }


def _beside(eager: Side, side: Side) -> Times:
    """What the blocks of the eager reference, which took turns with it, add."""
    speedup, interval, pace = compared(eager.spans, side.spans, spread_between(eager, side))
    return {
        "compile_s": round(side.settling_s, 3),
        "eager_us": typical(eager.spans),
        "over_eager": {"speedup": speedup, "interval": interval, "pace": pace},
        "eager_blocks_us": list(eager.spans),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
