"""Clocks of GPUs from NVIDIA's management library, which is faster than starting nvidia-smi.

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


def read_clocks() -> list[dict[str, Any]]:
    """Return clocks, temperature, power and performance state of each GPU now; None for what it does not report."""
    library, devices = _find_devices()
    return [_read_device(library, device) for device in devices]


def _read_device(library: ctypes.CDLL, device: ctypes.c_void_p) -> dict[str, Any]:
    milliwatts = _query(library.nvmlDeviceGetPowerUsage, device)
    state = _query(library.nvmlDeviceGetPerformanceState, device)
    return {
        "sm_mhz": _query(library.nvmlDeviceGetClockInfo, device, _SM),
        "memory_mhz": _query(library.nvmlDeviceGetClockInfo, device, _MEMORY),
        "celsius": _query(library.nvmlDeviceGetTemperature, device, _ON_THE_CHIP),
        "watts": None if milliwatts is None else milliwatts / 1000,
        "state": None if state is None else f"P{state}",
    }


@cache
def _find_devices() -> tuple[Any, list[ctypes.c_void_p]]:
    """Return the library and all devices of the driver, whatever CUDA_VISIBLE_DEVICES says."""
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


def _query(function: Any, device: ctypes.c_void_p, *kind: int) -> int | None:
    answer = ctypes.c_uint()
    return None if function(device, *kind, ctypes.byref(answer)) else answer.value
