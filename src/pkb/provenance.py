"""The machine and the software versions behind a record."""

import importlib.metadata
import platform as system
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

import pkb
from pkb.record import Environment, SandboxFacts

if TYPE_CHECKING:
    from pkb.platforms import Platform

_COMMON = {one.name for one in fields(Environment)}


def describe_environment(platform: "Platform", sandbox: SandboxFacts | None = None) -> Environment:
    """Return the facts about this machine that a record states."""
    facts, versions = platform.describe(), find_versions()
    common = {name: value for name, value in facts.items() if name in _COMMON}
    if "driver" in common and common["driver"] is not None:
        # nvidia-smi's answer may look like a number.
        common["driver"] = str(common["driver"])
    details = {name: value for name, value in facts.items() if name not in _COMMON}
    return Environment(
        platform=platform.name,
        comparable_times=platform.times_are_comparable,
        **common,
        **versions,
        sandbox=sandbox or SandboxFacts(),
        details=details,
    )


@cache
def find_versions() -> dict[str, Any]:
    """Return the versions of pkb, Python, the operating system and the packages that times depend on."""
    packages = {name: _find_version(name) for name in ("torch", "triton", "numpy")}
    return {"pkb": pkb.__version__, "python": system.python_version(), "system": system.platform(), **packages}


def _find_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
