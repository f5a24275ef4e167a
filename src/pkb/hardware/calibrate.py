"""Measures what this machine reaches: a hardware profile for the roofline, never for the judge's own checks."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path

import torch
from torch import Tensor

from pkb.base.atomic import write_whole
from pkb.hardware.roofline import Hardware, measured_path
from pkb.platforms import platforms
from pkb.problems.case import DTYPES

_BATCH_S = 0.05
_BATCHES = 5
_ENOUGH_S = 1.0


def calibrate() -> Hardware:
    """Copies and products by torch, each at its best: on the GPUs, or on all cores where there is none."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    copied = _copy_rate(device)
    several = device.type == "cuda" and torch.cuda.device_count() > 1
    chip = _chip(device)
    return Hardware(
        name=f"this machine, measured: {chip}",
        gpu=chip,
        gpus=torch.cuda.device_count() if several else 1,
        hbm_bytes_per_s=copied,
        # On one device each byte for a peer is read and written in the same memory.
        link_bytes_per_s=_peer_rate() if several else copied / 2,
        flops_per_s={name: _product_rate(dtype, device) for name, dtype in DTYPES.items()},
        **_sizes(device),
    )


def save(hardware: Hardware) -> Path:
    path = measured_path()
    write_whole(path, toml(hardware))
    return path


def toml(hardware: Hardware) -> str:
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


def _copy_rate(device: torch.device) -> float:
    """Bytes read and written per second."""
    source = torch.ones((1 << 30 if device.type == "cuda" else 1 << 28) // 4, device=device)
    return 2 * source.nbytes / _seconds(_copying(source, torch.empty_like(source)), device)


def _peer_rate() -> float:
    source = torch.ones(1 << 28, device="cuda:0")
    target = torch.empty_like(source, device="cuda:1")
    return source.nbytes / _seconds(_copying(source, target), target.device)


def _copying(source: Tensor, target: Tensor) -> Callable[[], Tensor]:
    return lambda: target.copy_(source)


def _product_rate(dtype: torch.dtype, device: torch.device) -> float:
    n = 8192 if device.type == "cuda" else 512
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    return 2 * n**3 / _seconds(lambda: a @ b, device)


def _seconds(work: Callable[[], Tensor], device: torch.device) -> float:
    """Of one call, in the best batch."""
    _batch(work, 1, device)
    calls = 1
    while _batch(work, calls, device) < _BATCH_S:
        calls *= 2
    batches = [_batch(work, calls, device)]
    while len(batches) < _BATCHES and sum(batches) < _ENOUGH_S:
        batches.append(_batch(work, calls, device))
    return min(batches) / calls


def _batch(work: Callable[[], Tensor], calls: int, device: torch.device) -> float:
    _wait(device)
    start = time.perf_counter()
    for _ in range(calls):
        work()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _chip(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(0)
    facts = platforms()["cpu"].describe()
    return f"{facts['cpu']}, {facts['cores']} cores"


def _sizes(device: torch.device) -> dict[str, int]:
    if device.type != "cuda":
        return {}
    facts = torch.cuda.get_device_properties(0)
    shared = facts.shared_memory_per_multiprocessor >> 10
    return {"sms": facts.multi_processor_count, "shared_memory_kib": shared, "l2_mib": facts.L2_cache_size >> 20}
