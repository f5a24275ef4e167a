"""Reference ranks that are born before they are needed.

On a GPU a birth takes most of a second. And processes are born unequal: some launch kernels faster than others, for
good, so that identical code would read differently in two of them. From several, one can be chosen.
"""

from pkb.judge.limits import Limits
from pkb.judge.nursery import Nursery
from pkb.judge.world import World
from pkb.record import Verdict

_AT_ONCE, _NEXT = 3, 2
_TRIES = 5
_SAME_ALONE, _SAME_TOGETHER = 0.01, 0.03
"""Of a world of one, and of several ranks, whose time depends less on how fast they launch."""


class Spares:
    """Worlds without a problem yet, all of one size."""

    def __init__(self, nursery: Nursery, limits: Limits):
        self.nursery, self._limits = nursery, limits
        self._waiting: list[World] = []

    def bear(self, size: int, choice: bool) -> None:
        """Begin with some more, where births take long, without waiting for them; with several, if one is chosen."""
        self._make_room(size)
        wanted = self._room(size) if choice else min(_NEXT, self._room(size))
        for _ in range(min(_AT_ONCE, wanted - len(self._waiting))):
            self._waiting.append(self._birth(size))

    def take(self, size: int) -> World:
        """Any, started."""
        self._make_room(size)
        world = self._waiting.pop(0) if self._waiting else self._birth(size)
        world.start()
        return world

    def like(self, size: int, gait_us: float) -> World:
        """The one that launches most nearly at this pace. Afterwards no birth is under way."""
        self._make_room(size)
        tries = _TRIES - len(self._waiting)
        self._sort(gait_us)
        while tries > 0 and not (self._waiting and alike(self._waiting[0].gait(), gait_us, size)):
            self._waiting.append(self._birth(size))
            self._sort(gait_us)
            self._end_beyond(max(1, self._room(size)))
            tries -= 1
        return self._waiting.pop(0)

    def match(self, size: int, gait_us: float) -> bool:
        """Whether one launches at this pace, of those that wait and whose own is known, if any is."""
        self._make_room(size)
        known = [world.gait_us for world in self._waiting if world.gait_us is not None]
        return not known or any(alike(one_us, gait_us, size) for one_us in known)

    def settle(self) -> None:
        """Wait until no birth is under way."""
        for world in self._waiting:
            world.start()

    def drop(self) -> None:
        """What a candidate may have reached."""
        self._end_beyond(0, kill=True)

    def _room(self, size: int) -> int:
        return self.nursery.platform.spare_worlds(size)

    def _birth(self, size: int) -> World:
        return World(self.nursery, size, self._limits, blame=Verdict.ENVIRONMENT)

    def _sort(self, gait_us: float) -> None:
        self._waiting.sort(key=lambda world: abs(world.gait() - gait_us))

    def _make_room(self, size: int) -> None:
        if any(world.size != size for world in self._waiting):
            self._end_beyond(0)

    def _end_beyond(self, count: int, kill: bool = False) -> None:
        while len(self._waiting) > count:
            self._waiting.pop().end(kill)


def alike(one_us: float, other_us: float, size: int) -> bool:
    """Whether two worlds launch at the same pace, so that it does not pass for a difference of code."""
    same = _SAME_ALONE if size == 1 else _SAME_TOGETHER
    return abs(one_us - other_us) <= same * max(one_us, other_us)
