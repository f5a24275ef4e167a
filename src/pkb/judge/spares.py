"""Reference ranks that are born before they are needed.

On a GPU a birth takes most of a second. And processes are born unequal: some launch kernels faster than others, for
good, so that identical code would read differently in two of them. From several, one can be chosen.
"""

from dataclasses import dataclass

from pkb.judge.limits import Limits
from pkb.judge.nursery import Nursery
from pkb.judge.world import World
from pkb.record import Verdict

_AT_ONCE, _NEXT = 3, 2
_TRIES = 5
_SAME_ALONE, _SAME_TOGETHER = 0.01, 0.03
"""Of a world of one, and of several ranks, whose time depends less on how fast they launch."""


@dataclass
class _Spare:
    world: World
    gait_us: float | None = None
    """None until it is measured."""

    def gait(self) -> float:
        if self.gait_us is None:
            self.world.start()
            self.gait_us = gait(self.world)
        return self.gait_us


class Spares:
    """Worlds without a problem yet, all of one size."""

    def __init__(self, nursery: Nursery, limits: Limits):
        self.nursery, self._limits = nursery, limits
        self._waiting: list[_Spare] = []

    def bear(self, size: int, choice: bool) -> None:
        """Begin with some more, where births take long, without waiting for them; with several, if one is chosen."""
        self._make_room(size)
        wanted = self._room(size) if choice else min(_NEXT, self._room(size))
        for _ in range(min(_AT_ONCE, wanted - len(self._waiting))):
            self._waiting.append(self._birth(size))

    def take(self, size: int) -> World:
        """Any, started."""
        self._make_room(size)
        spare = self._waiting.pop(0) if self._waiting else self._birth(size)
        spare.world.start()
        return spare.world

    def like(self, size: int, gait_us: float) -> tuple[World, float]:
        """The one that launches most nearly at this pace, and its own pace. Afterwards no birth is under way."""
        self._make_room(size)
        tries = _TRIES - len(self._waiting)
        self._sort(gait_us)
        while tries > 0 and not (self._waiting and alike(self._waiting[0].gait(), gait_us, size)):
            self._waiting.append(self._birth(size))
            self._sort(gait_us)
            self._end_beyond(max(1, self._room(size)))
            tries -= 1
        closest = self._waiting.pop(0)
        return closest.world, closest.gait()

    def match(self, size: int, gait_us: float) -> bool:
        """Whether one launches at this pace, of those that wait, if any do."""
        self._make_room(size)
        return not self._waiting or any(alike(spare.gait(), gait_us, size) for spare in self._waiting)

    def settle(self) -> None:
        """Wait until no birth is under way."""
        for spare in self._waiting:
            spare.world.start()

    def drop(self) -> None:
        """What a candidate may have reached."""
        self._end_beyond(0, kill=True)

    def _room(self, size: int) -> int:
        return self.nursery.platform.spare_worlds(size)

    def _birth(self, size: int) -> _Spare:
        return _Spare(World(self.nursery, size, self._limits, blame=Verdict.ENVIRONMENT))

    def _sort(self, gait_us: float) -> None:
        self._waiting.sort(key=lambda spare: abs(spare.gait() - gait_us))

    def _make_room(self, size: int) -> None:
        if any(spare.world.size != size for spare in self._waiting):
            self._end_beyond(0)

    def _end_beyond(self, count: int, kill: bool = False) -> None:
        while len(self._waiting) > count:
            self._waiting.pop().world.end(kill)


def gait(world: World) -> float:
    """Of the slowest rank, in microseconds. Ask before a candidate is loaded."""
    answers = world.ask({"do": "gait"}, "start", world.limits.start_s)
    return max(float(answer["us"]) for answer in answers)


def alike(one_us: float, other_us: float, size: int) -> bool:
    """Whether two worlds launch at the same pace, so that it does not pass for a difference of code."""
    same = _SAME_ALONE if size == 1 else _SAME_TOGETHER
    return abs(one_us - other_us) <= same * max(one_us, other_us)
