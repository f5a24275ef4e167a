"""What the GPU platforms have in common."""

import glob
import os
from pathlib import Path
from typing import Any

import torch

_JITTER_S = 2e-3
_CYCLES_PER_S = 1.5e9
"""Of torch.cuda._sleep; near enough for a delay whose length does not matter."""


class Gpu:
    """Ranks launch on a device; nothing here may touch it before a rank has been forked."""

    def memory_limit(self, world: int) -> int | None:
        # A CUDA process maps far more address space than it uses.
        return None

    def exposed(self, folder: Path) -> list[str]:
        return [*glob.glob("/dev/nvidia*"), *glob.glob("/dev/dxg")]

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def delay(self, seconds: float) -> None:
        if seconds:
            torch.cuda._sleep(int(seconds * _CYCLES_PER_S))

    def jitter(self) -> float:
        return _JITTER_S

    def describe(self) -> dict[str, Any]:
        devices = [torch.cuda.get_device_properties(k) for k in range(torch.cuda.device_count())]
        return {
            "gpus": [device.name for device in devices],
            "memory_gib": [round(device.total_memory / 2**30, 1) for device in devices],
            "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
            "driver": _driver(),
            "cores": os.cpu_count(),
        }


def use_device(number: int) -> torch.device:
    """Settle this rank on a device, with the arithmetic that the dtype promises: no TF32."""
    torch.cuda.set_device(number)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda", number)


def gpu_count() -> int:
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _driver() -> str | None:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
        return next((word for word in text.split() if word[:1].isdigit() and word.count(".") >= 1), None)
    except OSError:
        return None
