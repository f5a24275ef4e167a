"""The machine and the versions under a record."""

import importlib.metadata
import platform as system
from functools import cache
from typing import Any

import pkb
from pkb.platforms import Platform


def environment(platform: Platform) -> dict[str, Any]:
    return {"platform": platform.name, **platform.describe(), **versions()}


@cache
def versions() -> dict[str, str | None]:
    packages = {name: _version(name) for name in ("torch", "triton", "numpy")}
    return {"pkb": pkb.__version__, "python": system.python_version(), "system": system.platform(), **packages}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
