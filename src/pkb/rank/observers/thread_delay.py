"""Delays what a candidate has other threads do, so that a call that returns before they are done is found.

A call may use threads, if it waits for them: then it only takes longer. Without a delay, a thread that nobody waits for
could be done by chance before the result is copied, where the work is small.
"""

import _thread
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

_STEP_S, _MOST_STEPS = 2e-3, 10
"""A thread sleeps this long at each of its first events in a call. Events are calls and returns, of C functions too: a
thread that has waited for work meets one before it begins with it."""


class ThreadDelay:
    def __init__(self) -> None:
        self._call = 0
        """The number of the call that is under way; 0 between calls."""
        self._calls = 0
        self._is_installed = False
        self._left = threading.local()
        self._sleep = time.sleep

    def install(self) -> None:
        """Observe all threads that Python code starts from now on."""
        self._is_installed = True
        threading.setprofile(self._delay)
        _thread.start_new_thread = self._observe(_thread.start_new_thread)

    def remove(self) -> None:
        """Let threads run as they are, from their next event on: timed calls must not be slower than they are."""
        if self._is_installed:
            self._is_installed = False
            threading.setprofile(None)

    @contextlib.contextmanager
    def during_call(self) -> Iterator[None]:
        """Delay the work of other threads inside this context."""
        self._calls += 1
        self._call = self._calls
        try:
            yield
        finally:
            self._call = 0

    def _delay(self, frame: Any, event: str, arg: Any) -> None:
        if not self._is_installed:
            sys.setprofile(None)
        elif self._call and self._take_step():
            self._sleep(_STEP_S)

    def _take_step(self) -> bool:
        """Return whether this thread has not slept for long enough in this call."""
        number, left = getattr(self._left, "steps", (0, 0))
        left = left if number == self._call else _MOST_STEPS
        self._left.steps = (self._call, left - 1)
        return left > 0

    def _observe(self, start: Callable[..., int]) -> Callable[..., int]:
        """Return the function of `_thread` that starts threads, which `threading` does not use by this name."""

        def start_observed(function: Callable[..., Any], *rest: Any) -> int:
            def begin(*args: Any, **kwargs: Any) -> None:
                sys.setprofile(self._delay)
                function(*args, **kwargs)

            return start(begin, *rest)

        return start_observed
