"""Observers of what a candidate calls: each looks at a place that all ways in Python lead through."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from torch._C import _autograd

Note = Callable[[str], None]
"""Notes one call by its full name, such as aten.mm or ProcessGroupGloo.allreduce."""

_enable_recording = _autograd._enable_record_function
"""Taken before a candidate could replace it, and before the function is observed."""


class Pause(threading.local):
    """Whether the harness itself, or a call that is already noted, runs on this thread: then nothing is noted."""

    depth = 0

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Pause, for this thread only; torch's recording of operators too."""
        self.depth += 1
        _enable_recording(False)
        try:
            yield
        finally:
            self.depth -= 1
            _enable_recording(self.depth == 0)


def wrap(original: Callable[..., Any], before: Callable[..., None]) -> Callable[..., Any]:
    """Return a function that calls `before`, and then the original, both with the same arguments."""

    @wraps(original, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        before(*args, **kwargs)
        return original(*args, **kwargs)

    return call


def hide(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper without the attribute that leads to the original."""
    vars(wrapper).pop("__wrapped__", None)
    return wrapper


def list_subclasses(owner: type[Any]) -> Iterator[type[Any]]:
    """Yield a class and all classes that derive from it."""
    yield owner
    for subclass in owner.__subclasses__():
        yield from list_subclasses(subclass)
