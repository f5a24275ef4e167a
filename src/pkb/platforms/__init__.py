"""Where ranks live. One module each, holding PLATFORM; adding one is adding its file."""

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import torch

from pkb.errors import UsageError


class Platform(Protocol):
    name: str
    preference: int
    """The available platform with the highest preference is the default."""
    process_group: str
    """The torch.distributed backend of its ranks."""

    def missing(self) -> str | None:
        """What this machine lacks, as an instruction; None when the platform can be used."""

    def most_ranks(self) -> int | None:
        """The largest world that fits; None where nothing but patience limits it."""

    def nursery_environment(self, folder: Path) -> dict[str, str]:
        """Variables that must be set before torch and Triton are imported; files may go to `folder`."""

    def service(self) -> list[str]:
        """A command that must run beside the ranks; empty for none."""

    def exposed(self, folder: Path) -> list[str]:
        """What a rank must be able to write besides its own folders: devices, sockets; `folder` is the nursery's."""

    def memory_limit(self, world: int) -> int | None:
        """Bytes that one of `world` ranks may allocate, where the system can enforce it."""

    def enter(self, rank: int, world: int, shared_folder: Path) -> torch.device:
        """Prepare this rank's process, before its process group exists; its device."""

    def synchronize(self) -> None:
        """Wait for all work that this rank has launched."""

    def delay(self, seconds: float) -> None:
        """Hold this rank's next launch back, without waiting for earlier ones."""

    def jitter(self) -> float:
        """The longest delay, in seconds, that makes a missing barrier show."""

    def describe(self) -> dict[str, Any]:
        """The hardware, for the record."""


@cache
def platforms() -> dict[str, Platform]:
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    found: list[Platform] = [importlib.import_module(f"{__name__}.{name}").PLATFORM for name in names]
    return {p.name: p for p in sorted(found, key=lambda p: -p.preference)}


def platform_named(name: str = "auto") -> Platform:
    """The named platform, or the best one that this machine has."""
    if name == "auto":
        return next(p for p in platforms().values() if p.missing() is None)
    if name not in platforms():
        raise UsageError(f"unknown platform {name!r}; choose from auto, {', '.join(platforms())}")
    if lacking := platforms()[name].missing():
        raise UsageError(f"platform {name} cannot be used here: {lacking}")
    return platforms()[name]
