"""How one kind of candidate is written. One module each, holding BACKEND; adding one is adding its file."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pkb.errors import UsageError


@dataclass(frozen=True)
class Backend:
    name: str
    recognises: Callable[[bytes], bool]
    """Whether a source looks like this kind. The torch backend takes what no other claims."""
    missing: Callable[[], str | None]
    """What this machine lacks to run it, as an instruction; None when it can run."""
    preference: int = 0
    """Among the backends that recognise a source, the highest takes it."""
    headers: Callable[[], list[Path]] = list
    """Folders that its extensions are compiled against: other headers, another build."""
    arguments: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: given
    """The arguments of torch's `load` or `load_inline`, with what its extensions need besides."""


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
    return max(claims, key=lambda backend: backend.preference, default=backend_named("torch"))
