"""How one kind of candidate is written. One module each, holding BACKEND; adding one is adding its file."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from pkb.errors import UsageError


@dataclass(frozen=True)
class Backend:
    name: str
    recognises: Callable[[bytes], bool]
    """Whether a source looks like this kind. The torch backend takes what no other claims."""
    missing: Callable[[], str | None]
    """What this machine lacks to run it, as an instruction; None when it can run."""


@cache
def backends() -> dict[str, Backend]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}").BACKEND for name in names]
    return {backend.name: backend for backend in found}


def backend_named(name: str) -> Backend:
    if name not in backends():
        raise UsageError(f"unknown backend {name!r}; choose from {', '.join(backends())}")
    return backends()[name]


def recognise(source: bytes) -> Backend:
    claims = [b for b in backends().values() if b.recognises(source)]
    return claims[0] if claims else backend_named("torch")
