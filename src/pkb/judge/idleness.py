"""Whether a candidate rests while others are timed: what it burns then, they lack."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pkb.judge.failure import Failure
from pkb.judge.world import World
from pkb.record import Verdict

_SHARE, _SLACK_S = 0.15, 0.01
"""Threads of math libraries spin for a moment before they sleep."""


class Idleness:
    def __init__(self, world: World):
        self._world = world
        self._wall_s = self._cpu_s = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While the world has nothing to do."""
        start, used = time.perf_counter(), self._world.cpu_s()
        yield
        self._wall_s += time.perf_counter() - start
        self._cpu_s += self._world.cpu_s() - used

    def check(self) -> None:
        if self._cpu_s > _SHARE * self._wall_s + _SLACK_S:
            raise Failure(
                Verdict.CHEAT,
                f"its processes were at work for {self._cpu_s:.2f} s of the {self._wall_s:.2f} s in which others were "
                "timed; leave no thread at work after a call",
                check="idle",
                busy_s=self._cpu_s,
                seconds=self._wall_s,
            )
