"""Ranks are processes, collectives are gloo's, Triton kernels are interpreted.

Correctness on any machine. Times are CPU times and say nothing about a GPU.
"""

import contextlib
import os
import platform as system
import sys
import time
from pathlib import Path
from typing import Any

import torch

from pkb.hardware.roofline import Hardware
from pkb.platforms._slow_rank import set_lag

_MEMORY_SHARE = 0.6
_LAG_SHARE = 0.25
_SPREAD, _SPREAD_US = 0.1, 30.0


class Cpu:
    name = "cpu"
    preference = 0
    process_group = "gloo"
    one_device = True
    clock_source = "host clock"
    names_kernels = False
    born_slowly = unequal = False
    preloaded: tuple[str, ...] = ("triton.language",)
    preloaded_for_candidates: tuple[str, ...] = ()
    # More ranks than cores wait for each other's turns.
    clock_slack_us = 20_000.0

    def missing(self) -> str | None:
        return None

    def most_ranks(self) -> int | None:
        return None

    def spare_worlds(self, size: int) -> int:
        return 0

    def service(self) -> list[str]:
        return []

    def exposed(self, folder: Path) -> list[str]:
        return []

    def nursery_environment(self, folder: Path) -> dict[str, str]:
        # Triton decides at import whether it interprets. gloo would otherwise look for an address of the host name.
        return {"TRITON_INTERPRET": "1", "GLOO_SOCKET_IFNAME": _loopback(), "CUDA_VISIBLE_DEVICES": ""}

    def memory_limit(self, world: int) -> int | None:
        return int(_MEMORY_SHARE * _available_memory() / world)

    def enter(self, rank: int, world: int, shared_folder: Path) -> torch.device:
        from pkb.platforms import _interpreter, _symmetric

        torch.set_num_threads(1)
        _wait_politely()
        _symmetric.install(shared_folder)
        _interpreter.mend()
        return torch.device("cpu")

    def synchronize(self) -> None:
        pass

    def tidy(self) -> None:
        pass

    def delay(self, seconds: float) -> None:
        time.sleep(seconds)
        set_lag(seconds * _LAG_SHARE)

    def jitter(self) -> float:
        return 0.04

    def clock(self) -> "HostClock":
        return HostClock()

    def spread(self, us: float, controlled: bool = False, waits: bool = False) -> float:
        # Caches, pages, and whom the scheduler lets wait: chosen by what benchmarks/aa.py found on two cores.
        return _SPREAD + _SPREAD_US / us

    def hardware(self) -> Hardware | None:
        return None

    def clocks(self) -> dict[str, Any]:
        return {}

    def describe(self) -> dict[str, Any]:
        return {"cpu": _cpu_name(), "cores": os.cpu_count(), "memory_gib": round(_total_memory() / 2**30, 1)}


def _wait_politely() -> None:
    """Keep gloo's threads, which poll while a message waits to be expected, from interrupting ranks that compute.

    Where ranks outnumber cores, small collectives take several times as long otherwise. They work without it, too.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class HostClock:
    """Calls return when they are done, so the host's clock is the device's; there is nothing to queue."""

    cache_bytes = 0

    def free_bytes(self) -> int:
        return _available_memory()

    def hold_back(self, seconds: float) -> None:
        pass

    def dawdle(self, seconds: float) -> None:
        pass

    def flush(self) -> None:
        pass

    def mark(self) -> int:
        return time.perf_counter_ns()

    def has_passed(self, mark: int) -> bool:
        return True

    def nanoseconds(self, start: int, end: int) -> int:
        return end - start


def _loopback() -> str:
    return "lo0" if system.system() == "Darwin" else "lo"


def _available_memory() -> int:
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return _total_memory()


def _total_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return system.processor() or system.machine()


PLATFORM = Cpu()
