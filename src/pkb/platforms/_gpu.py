"""The base class of platforms with NVIDIA GPUs."""

import ctypes
import glob
import os
from pathlib import Path
from typing import Any

import torch

from pkb.base.paths import find_cache_folder
from pkb.hardware.roofline import Hardware
from pkb.platforms import Platform, _nvidia, _nvml

_CYCLES_PER_S = 2e9
"""Cycles of torch.cuda._sleep in a second: at least the clock of today's GPUs, so that a spin is never too short."""
_FLUSH_CACHES = 2
_SPARE_WORLDS = 3
"""Two for the next judgement, and the reference's world of the judgement after it, which is needed at once."""
_SPREAD, _SPREAD_US, _SPREAD_LEFT_US = 0.01, 0.6, 0.1
_SPREAD_OF_HOST = 0.03
"""A core of the H200's host is now and then half as fast for a tenth of a second."""


class Gpu(Platform):
    """Ranks launch on a GPU; nothing here may touch it before a rank has been forked."""

    device_type = "cuda"
    times_are_comparable = True
    has_kernel_profiler = True
    has_slow_start = has_unequal_processes = True
    preloaded_for_candidates = ("triton.language", "pkb.platforms._triton_ready")
    clock_source = "device events behind a spin"
    longest_delay_s = 2e-3
    # Drawing inputs and digesting outputs take 100 to 200 us per call; honest processes differ by up to 25 us in that.
    clock_slack_us = 40.0

    def make_environment(self, folder: Path) -> dict[str, str]:
        # For what the nursery itself compiles. Every rank has a folder of its own.
        return {"TRITON_CACHE_DIR": str(find_cache_folder() / "triton")}

    def count_spare_worlds(self, size: int) -> int:
        # Ranks that wait share the GPU with those that are timed: with several, identical code read 0.76 to 1.39.
        return _SPARE_WORLDS if size == 1 else 0

    def list_writable_paths(self, folder: Path) -> list[str]:
        return [*glob.glob("/dev/nvidia*"), *glob.glob("/dev/dxg")]

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def free_unused_memory(self) -> None:
        torch.cuda.empty_cache()

    def delay(self, seconds: float) -> None:
        if seconds:
            torch.cuda._sleep(int(seconds * _CYCLES_PER_S))

    def make_clock(self) -> "DeviceClock":
        return DeviceClock()

    def estimate_spread(self, us: float, controlled: bool = False, waits: bool = False) -> float:
        # Launches, and addresses in memory: chosen by what benchmarks/aa.py found on an H200.
        return _SPREAD + _SPREAD_OF_HOST * waits + (_SPREAD_LEFT_US if controlled else _SPREAD_US) / us

    def find_hardware(self) -> Hardware | None:
        found = _nvidia.query_gpus()
        return Hardware.find_by_gpu(found[0]["name"]) if found else None

    def read_clocks(self) -> dict[str, Any]:
        return {"gpus": _nvml.read_clocks()}

    def describe(self) -> dict[str, Any]:
        found = _nvidia.query_gpus()
        return {
            "gpus": [gpu["name"] for gpu in found],
            "memory_gib": [_to_gib(gpu["memory_mib"]) for gpu in found],
            "driver": found[0]["driver"] if found else None,
            "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
            "cores": os.cpu_count(),
        }


class DeviceClock:
    """CUDA events on the current stream."""

    def __init__(self) -> None:
        properties: Any = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.cache_bytes = int(properties.L2_cache_size)
        words = _FLUSH_CACHES * self.cache_bytes // 4
        self._scratch = torch.zeros(words, dtype=torch.float32, device="cuda")
        self._sum = torch.zeros((), dtype=torch.float32, device="cuda")

    def count_free_bytes(self) -> int:
        return torch.cuda.mem_get_info()[0]

    def hold_back(self, seconds: float) -> None:
        _reset_persisting_lines()
        self.spin(seconds)

    def spin(self, seconds: float) -> None:
        torch.cuda._sleep(int(seconds * _CYCLES_PER_S))

    def flush_cache(self) -> None:
        # By reads: written lines would have to leave the cache while the next call runs.
        torch.sum(self._scratch, dim=0, out=self._sum)

    def mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def has_passed(self, mark: torch.cuda.Event) -> bool:
        return mark.query()

    def measure_ns(self, start: torch.cuda.Event, end: torch.cuda.Event) -> int:
        return round(start.elapsed_time(end) * 1e6)


def _to_gib(mebibytes: int | str) -> float | None:
    """Return None where host and device share their memory: nvidia-smi then has no number."""
    return None if isinstance(mebibytes, str) else round(mebibytes / 1024, 1)


def _reset_persisting_lines() -> None:
    """Let the cache evict data that a candidate may have asked it to keep."""
    try:
        ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
    except (OSError, AttributeError):
        return


def use_device(number: int) -> torch.device:
    """Make a GPU this rank's device, and compute float32 in float32, without TF32."""
    torch.cuda.set_device(number)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda", number)


def count_gpus() -> int:
    """Count GPUs without starting CUDA in this process, as far as torch can: ranks are forked from such a process."""
    return torch.cuda.device_count()
