"""Check that a candidate is idle while other worlds are timed: processor time that it uses then, they lack."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pkb.failure import Failure
from pkb.judge.worlds.world import World
from pkb.record import Verdict

_SHARE, _SHARE_OF_THEIR_CORE, _SLACK_S = 0.15, 0.05, 0.01
"""Shares of the wall time that a candidate may use while others are timed: all ranks together; one rank whose twin
waits for the shared core. Threads of math libraries spin for a moment before they sleep."""


class IdleCheck:
    def __init__(self, world: World):
        self._world = world
        self._wall_s = 0.0
        self._used_s, self._waited_s = np.zeros(world.size), np.zeros(world.size)
        """By rank: processor seconds of the candidate, and seconds that the others waited for a core."""

    @contextmanager
    def watch(self, other: World) -> Iterator[None]:
        """Measure the candidate while another world is timed."""
        start, used, waited = time.perf_counter(), self._world.measure_usage(), other.measure_usage()
        yield
        self._wall_s += time.perf_counter() - start
        self._used_s += (self._world.measure_usage() - used)[:, 0]
        self._waited_s += (other.measure_usage() - waited)[:, 1]

    def check(self) -> None:
        """Raise if the candidate was at work."""
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
        return self._world.nursery.platform.has_unequal_processes and bool(taken.any())
