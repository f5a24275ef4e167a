"""Triton's interpreter, made to share a core: a kernel that spins on another rank lets that rank run."""

import os
from collections.abc import Callable
from typing import Any


def yield_while_spinning() -> None:
    """Give up the time slice at every atomic: barriers spin on them, and ranks may outnumber cores."""
    try:
        from triton.runtime.interpreter import InterpreterBuilder
    except ImportError:
        return
    for name in ("create_atomic_cas", "create_atomic_rmw", "create_atomic_load", "create_atomic_poll"):
        if operation := getattr(InterpreterBuilder, name, None):
            setattr(InterpreterBuilder, name, _yielding(operation))


def _yielding(operation: Callable[..., Any]) -> Callable[..., Any]:
    def atomic(*args: Any, **kwargs: Any) -> Any:
        os.sched_yield()
        return operation(*args, **kwargs)

    return atomic
