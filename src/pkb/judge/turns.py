"""The queue of one judge: threads that ask it for something take turns, in the order in which they came."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Turns:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[int] = deque()
        """The threads that wait; the first has its turn."""

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread has its turn."""
        with self._changed:
            return self._has_turn(threading.get_ident())

    @contextmanager
    def take(self, *, ahead: bool = False) -> Iterator[None]:
        """Wait for a turn and hold it; a thread that has its turn goes on. `ahead` overtakes all that wait."""
        if self.is_mine:
            yield
            return
        me = threading.get_ident()
        try:
            with self._changed:
                self._queue.insert(1 if ahead else len(self._queue), me)
                self._changed.wait_for(lambda: self._has_turn(me))
            yield
        finally:
            # Also after Ctrl+C while it waited: others must not wait for a thread that has gone.
            with self._changed:
                self._queue.remove(me)
                self._changed.notify_all()

    def act_during(self, thread: int, action: Callable[[], None]) -> None:
        """Run a quick action if this thread has its turn, which does not end meanwhile."""
        with self._changed:
            if self._has_turn(thread):
                action()

    def _has_turn(self, thread: int) -> bool:
        return bool(self._queue) and self._queue[0] == thread
