"""Run calls under a profiler. The first calls warm up, unprofiled; then the ranks start the others together."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from pkb.platforms import Platform
from pkb.protocol.profile_files import TRACE, WARM_UP_CALLS

Call = Callable[[], Any]


def run_under_torch(calls: Sequence[Call], platform: Platform, folder: Path) -> None:
    """Write a Chrome trace of all but the warm-up calls to `folder`."""
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1)
    with torch.profiler.profile(schedule=schedule, record_shapes=True) as profiler:
        _warm_up(calls, platform)
        profiler.step()
        _run_calls(calls, platform)
    profiler.export_chrome_trace(str(folder / TRACE))


def run_under_ncu(calls: Sequence[Call], platform: Platform, folder: Path) -> None:
    """Let ncu, under which this process was started, profile all but the warm-up calls."""
    _warm_up(calls, platform)
    with torch.cuda.profiler.profile():
        _run_calls(calls, platform)


PROFILERS = {"torch": run_under_torch, "ncu": run_under_ncu}


def _warm_up(calls: Sequence[Call], platform: Platform) -> None:
    for call in calls[:WARM_UP_CALLS]:
        call()
    dist.barrier()
    platform.synchronize()


def _run_calls(calls: Sequence[Call], platform: Platform) -> None:
    for k, call in enumerate(calls[WARM_UP_CALLS:]):
        with torch.profiler.record_function(f"call {k}"):
            call()
    platform.synchronize()
