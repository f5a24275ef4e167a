"""Questions whose answers depend on each other, in circles too: `x = x + 1`."""

from collections.abc import Callable, Hashable
from typing import Any

_ROUNDS = 3
_MOST_STEPS = 1_000_000


class TooComplex(Exception):
    """Answering takes longer than any honest file needs."""


class Circles:
    """Works every answer out once. A circle starts with no answer and is gone through again while answers grow."""

    def __init__(self, work_out: Callable[[Any], list[Any]], unknown: Any):
        self._work_out, self._unknown = work_out, unknown
        self._known: dict[Hashable, list[Any]] = {}
        self._steps = 0
        self._start({})

    def _start(self, guesses: dict[Hashable, list[Any]]) -> None:
        self._guesses = guesses
        self._found: dict[Hashable, list[Any]] = {}
        self._open: set[Hashable] = set()
        self._circular: set[Hashable] = set()

    def solve(self, key: Hashable) -> list[Any]:
        if self._open:
            return self._ask(key)
        if key not in self._known:
            self._settle(key)
        return self._known[key]

    def _settle(self, key: Hashable) -> None:
        self._start({})
        for left in reversed(range(_ROUNDS)):
            self._ask(key)
            growing = {k for k in self._circular if self._found[k] != self._guesses.get(k, [])}
            if not growing or not left:
                break
            guesses = {k: self._found[k] for k in self._circular}
            if left == 1:
                # Whatever still grows, such as a counter, may grow for ever.
                guesses |= {k: [*guesses[k], self._unknown] for k in growing}
            self._start(guesses)
        self._known |= self._found
        self._start({})

    def _ask(self, key: Hashable) -> list[Any]:
        for answers in (self._known, self._found):
            if key in answers:
                return answers[key]
        if key in self._open:
            self._circular.add(key)
            return self._guesses.get(key, [])
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooComplex
        self._open.add(key)
        self._found[key] = self._work_out(key)
        self._open.remove(key)
        return self._found[key]
