"""NVIDIA's management library: it says at once what nvidia-smi takes a process of its own to say.

Neither leaves a CUDA context behind in the judge.
"""

import ctypes
from functools import cache
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_SM, _MEMORY = 1, 2
"""nvmlClockType_t"""
_ON_THE_CHIP = 0
"""nvmlTemperatureSensors_t"""


def moment() -> list[dict[str, Any]]:
    """Clocks, temperature, power and performance state of each GPU, now; None for what it does not tell."""
    library, devices = _devices()
    return [_moment(library, device) for device in devices]


def _moment(library: ctypes.CDLL, device: ctypes.c_void_p) -> dict[str, Any]:
    milliwatts = _asked(library.nvmlDeviceGetPowerUsage, device)
    state = _asked(library.nvmlDeviceGetPerformanceState, device)
    return {
        "sm_mhz": _asked(library.nvmlDeviceGetClockInfo, device, _SM),
        "memory_mhz": _asked(library.nvmlDeviceGetClockInfo, device, _MEMORY),
        "celsius": _asked(library.nvmlDeviceGetTemperature, device, _ON_THE_CHIP),
        "watts": None if milliwatts is None else milliwatts / 1000,
        "state": None if state is None else f"P{state}",
    }


@cache
def _devices() -> tuple[Any, list[ctypes.c_void_p]]:
    """All that the driver has, whatever CUDA_VISIBLE_DEVICES says."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None, []
    count = ctypes.c_uint()
    if library.nvmlInit_v2() or library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return library, []
    devices = [ctypes.c_void_p() for _ in range(count.value)]
    refused = [library.nvmlDeviceGetHandleByIndex_v2(k, ctypes.byref(device)) for k, device in enumerate(devices)]
    return library, [device for device, code in zip(devices, refused, strict=True) if not code]


def _asked(function: Any, device: ctypes.c_void_p, *kind: int) -> int | None:
    answer = ctypes.c_uint()
    return None if function(device, *kind, ctypes.byref(answer)) else answer.value
