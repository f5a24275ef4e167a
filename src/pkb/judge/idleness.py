"""Whether a candidate rests while others are timed: what it burns then, they lack."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pkb.judge.failure import Failure
from pkb.judge.world import World
from pkb.record import Verdict

_SHARE, _SHARE_OF_THEIR_CORE, _SLACK_S = 0.15, 0.05, 0.01
"""Of the time in which others are timed; less of it where they stand in line for the core that they are timed on.
Threads of math libraries spin for a moment before they sleep."""


class Idleness:
    def __init__(self, world: World):
        self._world = world
        self._wall_s = self._used_s = self._waited_s = 0.0

    @contextmanager
    def watched(self, other: World) -> Iterator[None]:
        """While this other world is timed, and the candidate has nothing to do."""
        start, (used, _), (_, waited) = time.perf_counter(), self._world.usage(), other.usage()
        yield
        self._wall_s += time.perf_counter() - start
        self._used_s += self._world.usage()[0] - used
        self._waited_s += other.usage()[1] - waited

    def check(self) -> None:
        if self._used_s > self._share() * self._wall_s + _SLACK_S:
            raise Failure(
                Verdict.CHEAT,
                f"its processes were at work for {self._used_s:.2f} s of the {self._wall_s:.2f} s in which others were "
                "timed; leave no thread at work after a call",
                check="idle",
                busy_s=self._used_s,
                seconds=self._wall_s,
                others_waited_s=self._waited_s,
            )

    def _share(self) -> float:
        """Of all ranks together."""
        pinned, size = self._world.nursery.platform.unequal, self._world.size
        in_line = self._waited_s > _SHARE_OF_THEIR_CORE * size * self._wall_s + _SLACK_S
        return min(_SHARE, _SHARE_OF_THEIR_CORE * size) if pinned and in_line else _SHARE
