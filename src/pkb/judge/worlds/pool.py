"""Reference ranks that are born before they are needed: on a GPU a birth takes most of a second."""

from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.world import World
from pkb.record import Verdict
from pkb.settings import Limits


class Spares:
    """Worlds without a problem yet, all of one size."""

    def __init__(self, nursery: Nursery, limits: Limits):
        self.nursery, self._limits = nursery, limits
        self._waiting: list[World] = []

    def bear(self, size: int, count: int) -> None:
        """Begin with some, until so many wait or are under way, without waiting for them."""
        self._make_room(size)
        for world in self._waiting:
            world.resume()
        while len(self._waiting) < count:
            self._waiting.append(self._birth(size))

    def take(self, size: int) -> World:
        """The first, started."""
        self._make_room(size)
        world = self._waiting.pop(0) if self._waiting else self._birth(size)
        world.start()
        return world

    def pause(self) -> None:
        """Hold births up until more are asked for."""
        for world in self._waiting:
            world.pause()

    def drop(self) -> None:
        """What a candidate may have reached."""
        self._end_all(kill=True)

    def _birth(self, size: int) -> World:
        return World(self.nursery, size, self._limits, blame=Verdict.ENVIRONMENT)

    def _make_room(self, size: int) -> None:
        if any(world.size != size for world in self._waiting):
            self._end_all(kill=False)

    def _end_all(self, kill: bool) -> None:
        while self._waiting:
            self._waiting.pop().end(kill)
