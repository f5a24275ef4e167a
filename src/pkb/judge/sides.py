"""The worlds that take turns while a candidate is timed."""

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from pkb.judge.channel import FORGED, Message
from pkb.judge.check import Wrong
from pkb.judge.pace import Spans, block_medians
from pkb.judge.rigor import Rigor
from pkb.judge.seeds import Seeds
from pkb.judge.trials import FIRST_TIMED_TRIAL, Setup
from pkb.judge.world import World, garbled

_MEMORY_SHARE = 0.25
_MOST_SPIN_S = 0.25
_FIRST_CALLS = 3
"""CUDA graphs are recorded in the second call and first replayed in the third."""


@dataclass(frozen=True)
class Plan:
    """What a block looks like; the same for all sides."""

    calls: int
    room: int
    """Calls whose arguments and results the device could hold at once."""
    cache_bytes: int
    """Of the device's last cache."""
    warm: bool

    @classmethod
    def of(cls, reference: World, setup: Setup, seeds: Seeds, rigor: Rigor, worlds: int, result_bytes: int) -> "Plan":
        """As many calls as the rigor asks for, each with arguments of its own, if the device has room for them."""
        replace(setup, calls=1).prepare(reference, seeds, FIRST_TIMED_TRIAL)
        answers = reference.ask({"do": "weigh"}, "timing", setup.limits.trial_s)
        heaviest = result_bytes + max(answer["argument_bytes"] for answer in answers)
        share = _MEMORY_SHARE * min(answer["free_bytes"] for answer in answers) / (worlds * setup.world)
        room = max(1, int(share / max(heaviest, 1)))
        return cls(min(rigor.calls_per_block, room), room, answers[0]["cache_bytes"], rigor.warm_cache)

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
        self.spin_s = 0.0
        self.spans: Spans = []
        self.queued: list[bool] = []
        self.kept: list[int] = []
        """Calls of the last block whose outputs every rank still has."""
        self.warmed = 0
        self.settling_s = 0.0
        """What the first calls took beyond later ones: mostly compiling, where something is compiled."""

    def warm_up(self, rigor: Rigor, seconds: float) -> None:
        """Let compilers, caches and clocks settle; then see how long the host takes to queue a block."""
        self.setup.prepare(self.world, self.seeds, FIRST_TIMED_TRIAL)
        first_s = self._warm(_FIRST_CALLS, seconds)
        # What is compiled in the first calls does not shorten the rest.
        end = time.monotonic() + rigor.warm_up_s
        while self.warmed < rigor.warm_up and time.monotonic() < end:
            self._warm(min(self.plan.calls, rigor.warm_up - self.warmed), seconds)
        # The first block loads what only the harness needs.
        answers = [self._time(keep_from=0) for _ in range(2)][-1]
        self.spin_s = min(_MOST_SPIN_S, 2 * max(answer["host_s"] for answer in answers) + 3e-4)
        self.settling_s = max(0.0, first_s - _FIRST_CALLS * block_medians(self.spans)[-1] / 1e6)
        self.forget()

    def forget(self) -> None:
        self.queued.clear()
        self.spans.clear()

    def _warm(self, count: int, seconds: float) -> float:
        """So many calls; the seconds that they took."""
        start = time.monotonic()
        self.world.ask({"do": "warm", "count": count}, "warm-up", seconds)
        self.warmed += count
        return time.monotonic() - start

    def block(self, number: int) -> None:
        self.setup.prepare(self.world, self.seeds, FIRST_TIMED_TRIAL + number)
        self._time(self.seeds.random("keep", number).randrange(self.plan.calls))

    def _time(self, keep_from: int) -> list[Message]:
        order = {"do": "time", "spin_s": self.spin_s, "flush": self.plan.flush, "keep_from": keep_from}
        answers = self.world.ask(order, "timing", self.setup.limits.trial_s)
        try:
            spans = np.array([answer["ns"] for answer in answers], dtype=float) / 1000
            self.kept = sorted(set.intersection(*({int(k) for k in answer["kept"]} for answer in answers)))
            self.queued.append(all(bool(answer["queued"]) for answer in answers))
            if spans.shape != (self.world.size, self.plan.calls) or not (spans > 0).all() or not self.kept:
                raise ValueError("spans")
            if not all(math.isfinite(answer["host_s"]) for answer in answers):
                raise ValueError("host_s")
        except FORGED as error:
            raise garbled(self.world, 0, "timing") from error
        for rank, answer in enumerate(answers):
            if answer.get("odd"):
                words = f"rank {rank} returned {str(answer['odd'])[:200]} in a timed call; return plain torch.Tensors"
                raise Wrong(words, check="timed-type", rank=rank)
        self.spans.append(spans.T.round(3).tolist())
        return answers

    def spin_for(self, calls: int) -> float:
        return min(_MOST_SPIN_S, self.spin_s * max(1.0, calls / self.plan.calls))
