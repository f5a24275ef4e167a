"""Timed blocks: the worlds that take turns while a candidate is timed, and what one block looks like."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.orders import draw_inputs
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import TIMED, Setup
from pkb.judge.worlds.rank_failures import describe_garbled_answer
from pkb.judge.worlds.world import World
from pkb.protocol import messages as m
from pkb.record import Spans
from pkb.settings import Rigor
from pkb.speedup import compute_block_times, compute_call_time
from pkb.trial import Trial, TrialKind

_MEMORY_SHARE = 0.25
_LEAST_SPIN_S, _MOST_SPIN_S = 3e-4, 0.25
_VOIDS = 2
_FIRST_CALLS, _SHORT_CALLS = 3, 2
"""CUDA graphs are recorded in the second call and first replayed in the third. A short block follows: of a call that
takes very long, and says otherwise, the judge wants to know before it orders many."""
_LEAST_SHARE, _MORE_WARM_UP = 0.75, 1.5
"""A block has at least this share of the rigor's calls, and a warm-up at the most this many times the rigor's. The
judge's secret picks the numbers: nobody can tell by counting calls which phase a call belongs to."""
_PADS = ((1 << 20) - 512, 10 * (1 << 20) - 512)
"""Bytes. Torch puts two of either size into a segment of its memory, small or large, and leaves no gap."""
_WARM_UP_US = 20_000.0
"""About the microseconds of the calls of a warm-up that are ordered together."""
_LONG_BLOCK_US = 50_000.0
"""A block of long calls has only as many as fit into this time, and at least one."""
_MOST_PADS, _PADS_SHARE = 31, 0.25
"""At most this many pads of each size, and this share of the rank's memory budget."""


@dataclass(frozen=True)
class BlockPlan:
    """What a block looks like; the same for all worlds that take turns."""

    calls: int
    room: int
    """Calls whose arguments and results the device could hold at once."""
    cache_bytes: int
    """Of the device's last-level cache; 0 where it is not flushed."""
    warm: bool
    pads: int = 0
    """The most pads of each size."""
    is_shortened: bool = False
    """Whether more calls would take too long, or not fit into the device's launch queue."""

    @classmethod
    def of(
        cls, reference: World, setup: Setup, seeds: Seeds, rigor: Rigor, worlds: int, result_bytes: int
    ) -> "BlockPlan":
        """Plan as many calls as the rigor asks for, each with its own arguments, if the device has room for them."""
        draw_inputs(reference, replace(setup, calls=1), seeds, TIMED)
        answers = reference.ask(m.MeasureMemory(), "timing", setup.limits.trial_s)
        heaviest = result_bytes + max(answer.argument_bytes for answer in answers)
        share = _MEMORY_SHARE * min(answer.free_bytes for answer in answers) / (worlds * setup.world)
        room = max(1, int(share / max(heaviest, 1)))
        pads = min(_MOST_PADS, int(_PADS_SHARE * share / sum(_PADS)))
        most = min(rigor.calls_per_block, room)
        calls = seeds.random("calls of a block").randint(math.ceil(_LEAST_SHARE * most), most)
        return cls(calls, room, answers[0].cache_bytes, rigor.warm_cache, pads)

    @property
    def most_calls(self) -> int:
        """The most calls to make one after the other, whatever they are made for."""
        return self.calls if self.is_shortened else self.room

    @property
    def flush(self) -> bool:
        return not self.warm and self.cache_bytes > 0

    @property
    def cache(self) -> str:
        if not self.cache_bytes:
            return "not looked after"
        if self.warm:
            return "warm: arguments were drawn just before the block"
        return "cold: arguments of its own for each call, last cache flushed after they were drawn"


class TimedWorld:
    """One of the worlds that take turns, and what its blocks have shown."""

    def __init__(self, name: str, world: World, plan: BlockPlan, setup: Setup, seeds: Seeds):
        self.name, self.world, self.plan, self.seeds = name, world, plan, seeds
        self.setup = replace(setup, calls=plan.calls)
        self.spin_s = self.host_s = 0.0
        """Seconds that the device spins before a block, and seconds that the host takes to queue one."""
        self.spans: Spans = []
        self.queued: list[bool] = []
        self.ahead = 0
        """How many first calls of the last block were queued before the device began with them."""
        self.warmed = 0
        self.settling_s = 0.0
        """Seconds that the first calls took beyond later ones: mostly compiling."""
        self.warm_us = 0.0
        """A call's time in the last block of the warm-up."""
        self.keeps_ahead = False
        """Whether the host can be ahead of the device: not where calls wait for it."""
        self.voids = 0
        """How many more blocks may be dropped since the host was too slow: few, as a candidate reports that itself."""
        self.last_host_s = 0.0
        """Seconds that the slowest rank's host took to queue the last block."""
        self.last_us = 0.0
        """A call's time in the last block, whether that block counts or not."""
        self.unclaimed_us = 0.0
        """Microseconds per call of the last block that the judge saw pass, and that no rank claims for its call."""
        self.first_s = 0.0
        """Seconds that the first calls took."""

    def settle(self, seconds: float, trial: Trial = TIMED) -> None:
        """Make the first calls, in which compilers are at work, and time a short block."""
        calls = min(_SHORT_CALLS, self.plan.calls)
        draw_inputs(self.world, replace(self.setup, calls=calls), self.seeds, trial)
        self.first_s = self._warm_up(_FIRST_CALLS, seconds)
        self._time(calls)

    def warm_up(self, rigor: Rigor, seconds: float, trial: Trial = TIMED) -> None:
        """Let compilers, caches and clocks settle; then measure how long the host takes to queue a block."""
        if not self.warmed:
            self.settle(seconds, trial)
        draw_inputs(self.world, self.setup, self.seeds, trial)
        # What is compiled in the first calls does not shorten the rest.
        end = time.monotonic() + rigor.warm_up_s
        wanted = int(rigor.warm_up * self.seeds.random("warm-up calls").uniform(1, _MORE_WARM_UP))
        together = max(1, int(_WARM_UP_US / self.last_us))
        while self.warmed < wanted and time.monotonic() < end:
            self._warm_up(min(together, wanted - self.warmed), seconds)
        # Cores of the host differ, and a process stays on its core for long: on the same core, no world is slower.
        self.pin(True)
        self._measure_lead()
        if (calls := self._count_fitting_calls()) < self.plan.calls:
            self.use_shorter_plan(replace(self.plan, calls=calls, is_shortened=True))
            draw_inputs(self.world, self.setup, self.seeds, trial)
            self._measure_lead()
        self.settling_s = max(0.0, self.first_s - _FIRST_CALLS * self.warm_us / 1e6)
        self.forget()

    def _measure_lead(self) -> None:
        """Measure how long the host takes to queue a block, and whether it keeps ahead of the device."""
        # The first block loads what only the harness needs. Only behind a long spin is a call's time the device's.
        self.spin_s = 0.0
        self._time(self.plan.calls)
        self.host_s = self.last_host_s
        self.spin_s = self._find_lead(call_s=0.0)
        self._time(self.plan.calls)
        self.warm_us = self.last_us
        self.keeps_ahead = self.queued[-1]
        # Calls that wait for the device wait for the spin, too.
        self._spin_for_host(self.last_host_s - (0.0 if self.keeps_ahead else min(self.spin_s, self.last_host_s)))

    def _count_fitting_calls(self) -> int:
        """Return how many calls a block may have so that it does not take long, and fits into the device's queue.

        A queue holds about a thousand launches. What comes later is launched one by one as the device gets on with the
        work, and takes as long as the host does. Of calls that wait for the device none is ever ahead.
        """
        fitting = max(1, self.ahead - 1) if 0 < self.ahead < self.plan.calls else self.plan.calls
        return max(1, min(fitting, int(_LONG_BLOCK_US / self.warm_us)))

    def use_shorter_plan(self, plan: BlockPlan) -> None:
        """Use this plan from now on if its blocks are shorter."""
        if plan.calls >= self.plan.calls:
            return
        self.host_s *= plan.calls / self.plan.calls
        self.plan, self.setup = plan, replace(self.setup, calls=plan.calls)
        self.spin_s = self._find_lead(self.warm_us / 1e6)

    def pin(self, pinned: bool) -> None:
        """Pin the ranks to the cores that all worlds are timed on, where cores matter; or unpin them."""
        if self.world.nursery.platform.has_unequal_processes:
            self.world.pin(pinned)

    def use_setup(self, setup: Setup) -> "TimedWorld":
        """Use another setup of the same problem from now on."""
        self.setup = replace(setup, calls=self.plan.calls)
        return self

    def _find_lead(self, call_s: float) -> float:
        """Return twice the spin that keeps the host ahead of the device: it queues one call while another runs."""
        behind_s = max(self.host_s / self.plan.calls, self.host_s - (self.plan.calls - 1) * call_s)
        return min(_MOST_SPIN_S, 2 * behind_s + _LEAST_SPIN_S)

    def _spin_for_host(self, host_s: float) -> None:
        self.host_s = host_s
        self.spin_s = self._find_lead(self.warm_us / 1e6)

    def check_lead(self) -> bool:
        """Return whether the last block shows the device's time; if not, spin longer from now on."""
        if self.queued[-1] or not self.voids:
            return True
        self.voids -= 1
        self._spin_for_host(max(self.host_s, self.last_host_s))
        return False

    def drop_last_block(self) -> None:
        self.queued.pop()
        self.spans.pop()

    def forget(self) -> None:
        self.queued.clear()
        self.spans.clear()
        self.voids = _VOIDS if self.keeps_ahead else 0

    def _warm_up(self, count: int, seconds: float) -> float:
        """Run `count` warm-up calls; return the seconds they took."""
        start = time.monotonic()
        self.world.ask(m.WarmUp(count), "warm-up", seconds)
        self.warmed += count
        return time.monotonic() - start

    def time_block(self, trial: Trial) -> None:
        """Draw the inputs of a block and time it."""
        draw_inputs(self.world, self.setup, self.seeds, trial, pads=self._choose_pads(trial))
        self._time(self.plan.calls)

    def _choose_pads(self, trial: Trial) -> list[int]:
        """Return bytes to allocate first, so that arguments lie elsewhere in each block: on an H200 that matters."""
        if not self.world.nursery.platform.has_unequal_processes:
            return []
        draw = self.seeds.random("pads", trial.kind, trial.index)
        whole = [count for count in _PADS for _ in range(draw.randint(0, self.plan.pads))]
        return [*whole, *(draw.randrange(1, count) for count in _PADS)]

    def _time(self, calls: int) -> None:
        """Time the prepared calls, of which there are `calls`."""
        start = time.perf_counter()
        order = m.TimeBlock(self.spin_s, self.plan.flush)
        answers: list[m.BlockTimes] = self.world.ask(order, "timing", self.setup.limits.trial_s)
        seen_us = 1e6 * (time.perf_counter() - start)
        for rank, answer in enumerate(answers):
            if len(answer.ns) != calls or answer.ahead > calls or not all(ns > 0 for ns in answer.ns):
                raise describe_garbled_answer(self.world.blame, rank, "timing")
            if answer.odd:
                words = f"rank {rank} returned {answer.odd[:200]} in a timed call; return plain torch.Tensors"
                raise Wrong(words, check="timed-type", rank=rank)
        self.ahead = min(answer.ahead for answer in answers)
        self.queued.append(self.ahead == calls)
        self.last_host_s = max(answer.host_s for answer in answers)
        spans = np.array([answer.ns for answer in answers]) / 1000
        self.unclaimed_us = (seen_us - float(spans.max(axis=0).sum())) / calls
        self.spans.append(spans.T.round(3).tolist())
        self.last_us = compute_block_times(self.spans[-1:])[0]

    def find_spin(self, calls: int) -> float:
        """Return the seconds to spin while this many calls are queued."""
        return min(_MOST_SPIN_S, self.host_s * calls / self.plan.calls + _LEAST_SPIN_S)


def find_spread(one: TimedWorld, other: TimedWorld, controlled: bool = False) -> float:
    """Return the share by which identical code may differ on these two."""
    us = min(compute_call_time(one.spans), compute_call_time(other.spans))
    waits = not (one.keeps_ahead and other.keeps_ahead)
    return one.world.nursery.platform.estimate_spread(us, controlled, waits)


def run_rounds(
    worlds: Sequence[TimedWorld],
    rigor: Rigor,
    is_enough: Callable[[], bool],
    watch: Mapping[str, Callable[[], AbstractContextManager[None]]] = MappingProxyType({}),
    kind: TrialKind = TrialKind.TIMED,
) -> Iterator[Trial]:
    """Time one block of each world until `is_enough`, within the rigor's limits; yield the trial of each round.

    `watch` has, by the name of a world, a context for its blocks. Some rounds are dropped if a host did not stay ahead
    of its device in them.
    """
    number, most = 0, rigor.most_blocks(worlds[0].world.size)
    end = time.monotonic() + rigor.pairs_s
    while len(worlds[0].spans) < most:
        if len(worlds[0].spans) >= rigor.least_pairs and (is_enough() or time.monotonic() > end):
            return
        trial = Trial(kind, number + 1)
        # A B B A ...: no world is always first.
        for world in worlds if number % 2 == 0 else reversed(worlds):
            with watch.get(world.name, nullcontext)():
                world.time_block(trial)
        behind = [world for world in worlds if not world.check_lead()]
        for world in worlds if behind else ():
            world.drop_last_block()
        yield trial
        number += 1
