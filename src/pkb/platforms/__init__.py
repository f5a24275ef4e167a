"""Where ranks live. One module each, holding PLATFORM; adding one is adding its file."""

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import torch

from pkb.errors import UsageError
from pkb.hardware.roofline import Hardware


class Clock(Protocol):
    """Time as a rank's device sees it. Everything happens in the order in which it was asked for."""

    cache_bytes: int
    """The size of the device's last cache; 0 where it is not looked after."""

    def free_bytes(self) -> int:
        """Memory that is left on the device."""

    def hold_back(self, seconds: float) -> None:
        """Let the host run ahead of the device."""

    def dawdle(self, seconds: float) -> None:
        """Keep the device busy for so long."""

    def flush(self) -> None:
        """Push everything out of the last cache."""

    def mark(self) -> Any:
        """A point in the device's time."""

    def has_passed(self, mark: Any) -> bool:
        """Whether the device has come there."""

    def nanoseconds(self, start: Any, end: Any) -> int:
        """Between two marks, once the device has passed both."""


class Platform(Protocol):
    name: str
    preference: int
    """The available platform with the highest preference is the default."""
    process_group: str
    """The torch.distributed backend of its ranks."""
    one_device: bool
    """Whether all ranks share one device."""
    names_kernels: bool
    """Whether a profiler can say what ran on its devices."""
    preloaded: tuple[str, ...]
    """Modules that ranks find imported, where they are installed."""
    preloaded_for_candidates: tuple[str, ...]
    """Those that only a candidate's need: the first reference is not to wait for them."""
    clock_source: str
    """What its clocks read, for the record."""
    born_slowly: bool
    """Whether births take so long that it is worth while to begin with them early."""
    unequal: bool
    """Whether the same code is faster in one process than in another, for good, on one address than on another, or on
    one core of the host."""
    clock_slack_us: float
    """How far the judge's own clock may differ, per call, from an honest rank's."""

    def missing(self) -> str | None:
        """What this machine lacks, as an instruction; None when the platform can be used."""

    def most_ranks(self) -> int | None:
        """The largest world that fits; None where nothing but patience limits it."""

    def spare_worlds(self, size: int) -> int:
        """How many worlds may wait for the next judgement: 0 where births take no time, or waiting disturbs clocks."""

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

    def tidy(self) -> None:
        """Hand unused device memory back, so that all ranks that are timed start alike."""

    def delay(self, seconds: float) -> None:
        """Hold this rank's next launch back, without waiting for earlier ones."""

    def jitter(self) -> float:
        """The longest delay, in seconds, that makes a missing barrier show."""

    def clock(self) -> Clock:
        """The clock of this rank's device; only ranks ask for it."""

    def describe(self) -> dict[str, Any]:
        """The hardware, for the record."""

    def spread(self, us: float, controlled: bool = False, waits: bool = False) -> float:
        """The share by which identical code may differ between two processes, in calls of so many microseconds.

        Less is left where they have been compared by a control; more where a call waits for the device, so that the
        host's time is in it.
        """

    def hardware(self) -> Hardware | None:
        """Peak rates of a rank's device, where we have them."""

    def clocks(self) -> dict[str, Any]:
        """Frequencies, temperature and power at this moment, as far as the system tells."""


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
