"""Measures what this machine reaches: a hardware profile for the roofline, never for the judge's own checks."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pkb.base.atomic import write_whole
from pkb.hardware.host import read_cpu_name
from pkb.hardware.roofline import Hardware, find_measured_path
from pkb.problems.case import DTYPES

_BATCH_S = 0.05
_BATCHES = 5
_ENOUGH_S = 1.0


def calibrate() -> Hardware:
    """Measure the best rates of torch's copies and products, on the GPUs or else on all cores."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    copy_rate = _measure_copies(device)
    several = device.type == "cuda" and torch.cuda.device_count() > 1
    chip = _name_chip(device)
    return Hardware(
        name=f"this machine, measured: {chip}",
        gpu=chip,
        gpus=torch.cuda.device_count() if several else 1,
        hbm_bytes_per_s=copy_rate,
        # On one device each byte for a peer is read and written in the same memory.
        link_bytes_per_s=_measure_peer_copies() if several else copy_rate / 2,
        flops_per_s={name: _measure_products(dtype, device) for name, dtype in DTYPES.items()},
        **_read_sizes(device),
    )


def save(hardware: Hardware) -> Path:
    path = find_measured_path()
    write_whole(path, format_profile(hardware))
    return path


def format_profile(hardware: Hardware) -> str:
    facts = asdict(hardware)
    rates = facts.pop("flops_per_s")
    return "\n".join(
        [
            f"# Measured by `pkb roofline --calibrate` on {date.today()} with torch {torch.__version__}:",
            "# what torch reached with large copies and products. The hardware itself may do better.",
            *(f"{key} = {json.dumps(value)}" for key, value in facts.items()),
            "",
            "[flops_per_s]",
            *(f"{dtype} = {rate}" for dtype, rate in rates.items()),
            "",
        ]
    )


def _measure_copies(device: torch.device) -> float:
    """Return the bytes that a copy reads and writes per second."""
    source = torch.ones((1 << 30 if device.type == "cuda" else 1 << 28) // 4, device=device)
    return 2 * source.nbytes / _time_call(_make_copy(source, torch.empty_like(source)), device)


def _measure_peer_copies() -> float:
    source = torch.ones(1 << 28, device="cuda:0")
    target = torch.empty_like(source, device="cuda:1")
    return source.nbytes / _time_call(_make_copy(source, target), target.device)


def _make_copy(source: Tensor, target: Tensor) -> Callable[[], Tensor]:
    return lambda: target.copy_(source)


def _measure_products(dtype: torch.dtype, device: torch.device) -> float:
    n = 8192 if device.type == "cuda" else 512
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    return 2 * n**3 / _time_call(lambda: a @ b, device)


def _time_call(work: Callable[[], Tensor], device: torch.device) -> float:
    """Return the seconds of one call in the best batch."""
    _time_batch(work, 1, device)
    calls = 1
    while _time_batch(work, calls, device) < _BATCH_S:
        calls *= 2
    batches = [_time_batch(work, calls, device)]
    while len(batches) < _BATCHES and sum(batches) < _ENOUGH_S:
        batches.append(_time_batch(work, calls, device))
    return min(batches) / calls


def _time_batch(work: Callable[[], Tensor], calls: int, device: torch.device) -> float:
    _synchronize(device)
    start = time.perf_counter()
    for _ in range(calls):
        work()
    _synchronize(device)
    return time.perf_counter() - start


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _name_chip(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(0)
    return f"{read_cpu_name()}, {os.cpu_count()} cores"


def _read_sizes(device: torch.device) -> dict[str, Any]:
    if device.type != "cuda":
        return {}
    facts = torch.cuda.get_device_properties(0)
    shared = facts.shared_memory_per_multiprocessor >> 10
    return {"sms": facts.multi_processor_count, "shared_memory_kib": shared, "l2_mib": facts.L2_cache_size >> 20}
