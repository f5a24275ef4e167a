"""Worlds of ranks, forked before they are needed. Nothing else decides when worlds are forked.

On a GPU a world takes most of a second to start. Worlds that wait share the GPU with those that are timed, so a
platform says how many may wait (`count_spare_worlds`); while clocks run, none is starting.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pkb.failure import Failure
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.sandboxed import Sandbox, is_place_closed
from pkb.judge.worlds.world import World
from pkb.record import Verdict
from pkb.settings import Limits


class WorldPool:
    """Waiting worlds, without a problem yet, all of one size: some for references, at most one for a candidate."""

    def __init__(self, nursery: Nursery, sandbox: Sandbox, limits: Limits):
        self.nursery, self.sandbox, self._limits = nursery, sandbox, limits
        self.references: list[World] = []
        self.candidates: list[World] = []
        self._size, self._timed = 0, False

    def begin(self, size: int, timed: bool, reference_known: bool) -> None:
        """Prepare for a judgement: drop what the last candidate could have reached, fork what this one needs."""
        if (self.sandbox.is_proved and not is_place_closed(self.sandbox.facts, "processes")) or size != self._size:
            self.drop()
        self._size, self._timed = size, timed
        if self.nursery.platform.count_spare_worlds(size):
            self._fork_references((not reference_known) + timed)
            self._fork_candidate()

    def take_reference(self, size: int) -> World:
        """Return a started world for a reference."""
        if size != self._size:
            self.drop()
            self._size = size
        world = self.references.pop(0) if self.references else self._new_reference()
        world.start()
        return world

    def take_candidate(self, size: int, limits: Limits) -> World:
        """Return a started world for a candidate, at the strongest level of the sandbox."""
        if self.nursery.platform.has_slow_start and size == self._size:
            # The candidate's world and the reference's start side by side.
            self._fork_references(int(self._timed))
            self._fork_candidate()
        waiting = self.candidates.pop(0) if self.candidates and size == self._size else None
        return self.sandbox.open_world(self.nursery, size, limits, waiting)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Fork nothing while clocks run; afterwards fork what the next judgement needs."""
        self._finish_forks()
        yield
        self.refill()

    def refill(self) -> None:
        """Fork what the next judgement of this size needs, as far as worlds may wait."""
        if room := self.nursery.platform.count_spare_worlds(self._size):
            self._fork_references(room)
            self._fork_candidate()

    def drop(self) -> None:
        """Kill all waiting worlds."""
        while waiting := self.references or self.candidates:
            waiting.pop().end(kill=True)

    def abandon(self) -> None:
        """Let go of all waiting worlds, whose nursery is lost."""
        while waiting := self.references or self.candidates:
            waiting.pop().abandon()

    def _finish_forks(self) -> None:
        """Wait until all waiting worlds have started; drop those that fail: their turn has not come."""
        for waiting in (self.references, self.candidates):
            for world in [*waiting]:
                try:
                    world.start()
                except Failure:
                    waiting.remove(world)

    def _fork_references(self, count: int) -> None:
        while len(self.references) < count:
            self.references.append(self._new_reference())

    def _fork_candidate(self) -> None:
        if not self.candidates:
            try:
                self.candidates += self.sandbox.fork_world(self.nursery, self._size, self._limits)
            except Failure:
                if self.sandbox.is_proved:
                    raise
                # `open_world` will find out, and try the next level.

    def _new_reference(self) -> World:
        return World(self.nursery, self._size, self._limits, blame=Verdict.ENVIRONMENT)
