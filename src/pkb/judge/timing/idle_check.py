"""Whether a candidate rests while others are timed: what it burns then, they lack."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pkb.failure import Failure
from pkb.judge.worlds.world import World
from pkb.record import Verdict

_SHARE, _SHARE_OF_THEIR_CORE, _SLACK_S = 0.15, 0.05, 0.01
"""Of the time in which others are timed: of all ranks together; and of one, where the other world's stands in line for
the core on which both are timed. Threads of math libraries spin for a moment before they sleep."""


class Idleness:
    def __init__(self, world: World):
        self._world = world
        self._wall_s = 0.0
        self._used_s, self._waited_s = np.zeros(world.size), np.zeros(world.size)
        """By rank: of the candidate's, and of the others'."""

    @contextmanager
    def watched(self, other: World) -> Iterator[None]:
        """While this other world is timed, and the candidate has nothing to do."""
        start, used, waited = time.perf_counter(), self._world.usage(), other.usage()
        yield
        self._wall_s += time.perf_counter() - start
        self._used_s += (self._world.usage() - used)[:, 0]
        self._waited_s += (other.usage() - waited)[:, 1]

    def check(self) -> None:
        if self._used_s.sum() > _SHARE * self._wall_s + _SLACK_S or self._takes_their_core():
            raise Failure(
                Verdict.CHEAT,
                f"its processes were at work for {self._used_s.sum():.2f} s of the {self._wall_s:.2f} s in which "
                "others were timed; leave no thread at work after a call",
                check="idle",
                busy_s=self._used_s.tolist(),
                seconds=self._wall_s,
                others_waited_s=self._waited_s.tolist(),
            )

    def _takes_their_core(self) -> bool:
        most_s = _SHARE_OF_THEIR_CORE * self._wall_s + _SLACK_S
        taken = (self._used_s > most_s) & (self._waited_s > most_s)
        return self._world.nursery.platform.unequal and bool(taken.any())
