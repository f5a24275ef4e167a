"""The worlds that take turns while a candidate is timed."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from pkb.judge.correctness.check import Wrong
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import FIRST_TIMED_TRIAL, Setup
from pkb.judge.worlds.world import World, garbled
from pkb.protocol.channel import FORGED
from pkb.settings import Rigor
from pkb.speedup import Spans, block_times, typical

_MEMORY_SHARE = 0.25
_LEAST_SPIN_S, _MOST_SPIN_S = 3e-4, 0.25
_VOIDS = 2
_FIRST_CALLS = 3
"""CUDA graphs are recorded in the second call and first replayed in the third."""
_PADS = ((1 << 20) - 512, 10 * (1 << 20) - 512)
"""Bytes. Torch puts two of either size into a segment of its memory, small or large, and leaves no gap."""
_MOST_PADS, _PADS_SHARE = 31, 0.25
"""Of each, and of what a rank may take of the device's memory."""


@dataclass(frozen=True)
class Plan:
    """What a block looks like; the same for all sides."""

    calls: int
    room: int
    """Calls whose arguments and results the device could hold at once."""
    cache_bytes: int
    """Of the device's last cache."""
    warm: bool
    pads: int = 0
    """Of each size, at the most."""

    @classmethod
    def of(cls, reference: World, setup: Setup, seeds: Seeds, rigor: Rigor, worlds: int, result_bytes: int) -> "Plan":
        """As many calls as the rigor asks for, each with arguments of its own, if the device has room for them."""
        replace(setup, calls=1).prepare(reference, seeds, FIRST_TIMED_TRIAL)
        answers = reference.ask({"do": "weigh"}, "timing", setup.limits.trial_s)
        heaviest = result_bytes + max(answer["argument_bytes"] for answer in answers)
        share = _MEMORY_SHARE * min(answer["free_bytes"] for answer in answers) / (worlds * setup.world)
        room = max(1, int(share / max(heaviest, 1)))
        pads = min(_MOST_PADS, int(_PADS_SHARE * share / sum(_PADS)))
        return cls(min(rigor.calls_per_block, room), room, answers[0]["cache_bytes"], rigor.warm_cache, pads)

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


class Side:
    """One world that takes turns, and what its blocks have shown."""

    def __init__(self, name: str, world: World, plan: Plan, setup: Setup, seeds: Seeds):
        self.name, self.world, self.plan, self.seeds = name, world, plan, seeds
        self.setup = replace(setup, calls=plan.calls)
        self.spin_s = self.host_s = 0.0
        """How long the device is held back in a block, for what the host takes to queue it."""
        self.spans: Spans = []
        self.queued: list[bool] = []
        self.kept: list[int] = []
        """Calls of the last block whose outputs every rank still has."""
        self.warmed = 0
        self.settling_s = 0.0
        """What the first calls took beyond later ones: mostly compiling, where something is compiled."""
        self.warm_us = 0.0
        """A call's time in the last block of the warm-up."""
        self.keeps_ahead = False
        """Whether the host can be ahead of the device: not where calls wait for it."""
        self.voids = 0
        """Blocks that may still be left out because the host was too slow: few, as a candidate says that itself."""
        self.last_host_s = 0.0
        """What the slowest host took to queue the last block."""

    def warm_up(self, rigor: Rigor, seconds: float, trial: int = FIRST_TIMED_TRIAL) -> None:
        """Let compilers, caches and clocks settle; then see how long the host takes to queue a block."""
        self.setup.prepare(self.world, self.seeds, trial)
        first_s = self._warm(_FIRST_CALLS, seconds)
        # What is compiled in the first calls does not shorten the rest.
        end = time.monotonic() + rigor.warm_up_s
        while self.warmed < rigor.warm_up and time.monotonic() < end:
            self._warm(min(self.plan.calls, rigor.warm_up - self.warmed), seconds)
        # Cores of the host differ, and a process stays where it is for long: where all sides are, none is slower.
        self.pin(True)
        # The first block loads what only the harness needs. Only behind a long spin is a call's time the device's.
        self._time(keep_from=0)
        self.host_s = self.last_host_s
        self.spin_s = self._lead(call_s=0.0)
        self._time(keep_from=0)
        self.warm_us = block_times(self.spans)[-1]
        self.keeps_ahead = self.queued[-1]
        # Calls that wait for the device wait for the spin, too.
        self._spin_for_host(self.last_host_s - (0.0 if self.keeps_ahead else min(self.spin_s, self.last_host_s)))
        self.settling_s = max(0.0, first_s - _FIRST_CALLS * self.warm_us / 1e6)
        self.forget()

    def pin(self, pinned: bool) -> None:
        """Where cores matter, keep the ranks to those that all sides are timed on; or let them go again."""
        if self.world.nursery.platform.unequal:
            self.world.pin(pinned)

    def posing(self, setup: Setup) -> "Side":
        """With another setup of the same problem from now on."""
        self.setup = replace(setup, calls=self.plan.calls)
        return self

    def _lead(self, call_s: float) -> float:
        """Twice what keeps the host ahead of the device: it queues one call while the one before runs."""
        behind_s = max(self.host_s / self.plan.calls, self.host_s - (self.plan.calls - 1) * call_s)
        return min(_MOST_SPIN_S, 2 * behind_s + _LEAST_SPIN_S)

    def _spin_for_host(self, host_s: float) -> None:
        self.host_s = host_s
        self.spin_s = self._lead(self.warm_us / 1e6)

    def kept_ahead(self) -> bool:
        """Whether the last block shows the device's time; if not, the host is given a longer lead from now on."""
        if self.queued[-1] or not self.voids:
            return True
        self.voids -= 1
        self._spin_for_host(max(self.host_s, self.last_host_s))
        return False

    def leave_out(self) -> None:
        """The last block."""
        self.queued.pop()
        self.spans.pop()

    def forget(self) -> None:
        self.queued.clear()
        self.spans.clear()
        self.voids = _VOIDS if self.keeps_ahead else 0

    def _warm(self, count: int, seconds: float) -> float:
        """So many calls; the seconds that they took."""
        start = time.monotonic()
        self.world.ask({"do": "warm", "count": count}, "warm-up", seconds)
        self.warmed += count
        return time.monotonic() - start

    def block(self, trial: int) -> None:
        self.setup.prepare(self.world, self.seeds, trial, pads=self._pads(trial))
        self._time(self.seeds.random("keep", trial).randrange(self.plan.calls))

    def _pads(self, trial: int) -> list[int]:
        """Bytes that lie before arguments, so that these lie elsewhere in each block: on an H200 it matters where."""
        if not self.world.nursery.platform.unequal:
            return []
        draw = self.seeds.random("pads", trial)
        whole = [count for count in _PADS for _ in range(draw.randint(0, self.plan.pads))]
        return [*whole, *(draw.randrange(1, count) for count in _PADS)]

    def _time(self, keep_from: int) -> None:
        order = {"do": "time", "spin_s": self.spin_s, "flush": self.plan.flush, "keep_from": keep_from}
        answers = self.world.ask(order, "timing", self.setup.limits.trial_s)
        try:
            spans = np.array([answer["ns"] for answer in answers], dtype=float) / 1000
            self.kept = sorted(set.intersection(*({int(k) for k in answer["kept"]} for answer in answers)))
            self.queued.append(all(bool(answer["queued"]) for answer in answers))
            if spans.shape != (self.world.size, self.plan.calls) or not (spans > 0).all() or not self.kept:
                raise ValueError("spans")
            self.last_host_s = max(float(answer["host_s"]) for answer in answers)
            if not math.isfinite(self.last_host_s):
                raise ValueError("host_s")
        except FORGED as error:
            raise garbled(self.world, 0, "timing") from error
        for rank, answer in enumerate(answers):
            if answer.get("odd"):
                words = f"rank {rank} returned {str(answer['odd'])[:200]} in a timed call; return plain torch.Tensors"
                raise Wrong(words, check="timed-type", rank=rank)
        self.spans.append(spans.T.round(3).tolist())

    def spin_for(self, calls: int) -> float:
        """While so many calls are queued."""
        return min(_MOST_SPIN_S, self.host_s * calls / self.plan.calls + _LEAST_SPIN_S)


def spread_between(one: Side, other: Side, controlled: bool = False) -> float:
    """The share by which identical code may differ on these two."""
    us = min(typical(one.spans), typical(other.spans))
    waits = not (one.keeps_ahead and other.keeps_ahead)
    return one.world.nursery.platform.spread(us, controlled, waits)


def rounds(
    sides: Sequence[Side],
    rigor: Rigor,
    enough: Callable[[], bool],
    around: Mapping[str, Callable[[], AbstractContextManager[None]]] = MappingProxyType({}),
    first: int = FIRST_TIMED_TRIAL,
) -> Iterator[int]:
    """One block of each side, until there are the rigor's calls and `enough`; the number of each round once it is over.

    `around` holds, by the side's name, what to do around its blocks; they are counted as trials from `first` on. A few
    rounds are left out if a host did not stay ahead of its device in them.
    """
    least, most = rigor.least_blocks(sides[0].plan.calls), rigor.most_blocks(sides[0].world.size)
    number = 0
    while len(sides[0].spans) < max(least, most):
        if len(sides[0].spans) >= least and enough():
            return
        # A B B A ...: no side is always first.
        for side in sides if number % 2 == 0 else reversed(sides):
            with around.get(side.name, nullcontext)():
                side.block(first + number + 1)
        behind = [side for side in sides if not side.kept_ahead()]
        for side in sides if behind else ():
            side.leave_out()
        yield number
        number += 1
