"""The base class of platforms, and the clock of those whose ranks compute on the host."""

import os
import time
from pathlib import Path
from typing import Any, Protocol

import torch

from pkb.hardware.host import read_available_memory, read_cpu_name, read_total_memory
from pkb.hardware.roofline import Hardware

_SPREAD, _SPREAD_US = 0.1, 30.0


class Clock(Protocol):
    """Time as a rank's device sees it. The device does everything in the order in which it was asked."""

    cache_bytes: int
    """The size of the device's last cache; 0 where the cache is not flushed."""

    def count_free_bytes(self) -> int:
        """Return the memory that is free on the device."""

    def hold_back(self, seconds: float) -> None:
        """Keep the device busy, so that the host can queue timed calls ahead of it."""

    def spin(self, seconds: float) -> None:
        """Keep the device busy for this long."""

    def flush_cache(self) -> None:
        """Push everything out of the last cache."""

    def mark(self) -> Any:
        """Return a point in the device's time."""

    def has_passed(self, mark: Any) -> bool:
        """Return whether the device has reached a mark."""

    def measure_ns(self, start: Any, end: Any) -> int:
        """Return the nanoseconds between two marks, once the device has passed both."""


class HostClock:
    """The host's clock, for ranks whose calls return when they are done: nothing is queued on a device."""

    cache_bytes = 0

    def count_free_bytes(self) -> int:
        return read_available_memory()

    def hold_back(self, seconds: float) -> None:
        pass

    def spin(self, seconds: float) -> None:
        pass

    def flush_cache(self) -> None:
        pass

    def mark(self) -> int:
        return time.perf_counter_ns()

    def has_passed(self, mark: int) -> bool:
        return True

    def measure_ns(self, start: int, end: int) -> int:
        return end - start


class Platform:
    """Where ranks run. The defaults describe processes that compute on the host's CPU; override what differs.

    Only `name` and `enter` are required. docs/adding-a-platform.md follows an example.
    """

    name: str
    preference: int = -1
    """`--platform auto` takes the usable platform with the highest preference."""
    device_type: str = "cpu"
    """The torch device type that ranks compute on."""
    process_group: str = "gloo"
    """The torch.distributed backend between the ranks."""
    one_device: bool = True
    """Whether all ranks share one device."""
    times_are_comparable: bool = False
    """Whether times of different judgements may be compared, and enter leaderboards."""
    has_kernel_profiler: bool = False
    """Whether torch's profiler can name the kernels that ran on the device."""
    has_slow_start: bool = False
    """Whether ranks take so long to start that worlds are forked before they are needed."""
    has_unequal_processes: bool = False
    """Whether the same code is faster in one process than in another for as long as both live, because of its
    addresses or its core: times then need an A/A control and ranks are pinned to cores."""
    preloaded: tuple[str, ...] = ()
    """Modules that the nursery imports for all ranks, where they are installed."""
    preloaded_for_candidates: tuple[str, ...] = ()
    """Modules that the nursery imports after the first reference has started: only candidates need them."""
    service_command: tuple[str, ...] = ()
    """A daemon that must run as long as there are ranks, such as NVIDIA's MPS; empty for none."""
    clock_source: str = "host clock"
    """What the clocks read, for the record."""
    clock_slack_us: float = 5_000.0
    """Microseconds per call by which the judge's own clock may differ from an honest rank's.

    On a CPU, more ranks than cores wait for each other's turns."""
    longest_delay_s: float = 0.04
    """The usual longest delay of a rank, in seconds, that the judge injects to make a missing barrier show; one of a
    judgement is up to six times as long."""

    @property
    def max_ranks(self) -> int | None:
        """The largest world that fits; None without a limit."""
        return None

    def find_missing(self) -> str | None:
        """Return what this machine lacks, as an instruction; None when the platform can be used."""
        return None

    def count_spare_worlds(self, size: int) -> int:
        """Return how many forked worlds of `size` ranks may wait for the next judgement.

        0 where worlds start at once, or where waiting ranks would disturb the clocks.
        """
        return 0

    def make_environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that must be set before torch and Triton are imported; `folder` may hold files."""
        return {}

    def list_writable_paths(self, folder: Path) -> list[str]:
        """Return what ranks must be able to write besides their own folders: devices, sockets.

        `folder` is the one that `make_environment` got.
        """
        return []

    def compute_memory_limit(self, world: int) -> int | None:
        """Return the bytes that each of `world` ranks may allocate; None where the system cannot enforce a limit."""
        return None

    def enter(self, rank: int, world: int, shared_folder: Path) -> torch.device:
        """Prepare this rank's process before its process group exists, and return its device."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for all work that this rank has launched."""

    def free_unused_memory(self) -> None:
        """Return unused device memory, so that all ranks that are timed start alike."""

    def delay(self, seconds: float) -> None:
        """Delay this rank's next launch, without waiting for earlier ones; 0 ends the delay of a call before."""
        time.sleep(seconds)

    def make_clock(self) -> Clock:
        """Return a clock of this rank's device; only ranks call this."""
        return HostClock()

    def describe(self) -> dict[str, Any]:
        """Return the hardware, for the record."""
        memory_gib = round(read_total_memory() / 2**30, 1)
        return {"cpu": read_cpu_name(), "cores": os.cpu_count(), "memory_gib": memory_gib}

    def estimate_spread(self, us: float, controlled: bool = False, waits: bool = False) -> float:
        """Return the share by which identical code may differ between two processes, in calls of `us` microseconds.

        It is smaller where an A/A control has compared the processes (`controlled`), and larger where a call waits for
        the device, so that the host's time is in it (`waits`).
        """
        # Caches, pages and the scheduler: chosen by what benchmarks/aa.py found on two cores.
        return _SPREAD + _SPREAD_US / us

    def find_hardware(self) -> Hardware | None:
        """Return the peak rates of a rank's device, where they are known."""
        return None

    def read_clocks(self) -> dict[str, Any]:
        """Return frequencies, temperature and power at this moment, as far as the system has them."""
        return {}
