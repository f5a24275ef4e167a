"""Profilers, as a rank runs them. The first calls warm up, unseen; the ranks then start the others together."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from pkb.platforms import Platform

TRACE = "trace.json"
WARM_UP_CALLS = 2
"""Buffers that are used in turn have both been used then, and all is compiled."""

Call = Callable[[], Any]


def by_torch(calls: Sequence[Call], platform: Platform, folder: Path) -> None:
    """Leave a Chrome trace of all but the first calls in `folder`."""
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1)
    with torch.profiler.profile(schedule=schedule, record_shapes=True) as profiler:
        _warm_up(calls, platform)
        profiler.step()
        _run(calls, platform)
    profiler.export_chrome_trace(str(folder / TRACE))


def by_ncu(calls: Sequence[Call], platform: Platform, folder: Path) -> None:
    """Have ncu, which this process was started under, look at all but the first calls."""
    _warm_up(calls, platform)
    with torch.cuda.profiler.profile():
        _run(calls, platform)


PROFILERS = {"torch": by_torch, "ncu": by_ncu}


def _warm_up(calls: Sequence[Call], platform: Platform) -> None:
    for call in calls[:WARM_UP_CALLS]:
        call()
    dist.barrier()
    platform.synchronize()


def _run(calls: Sequence[Call], platform: Platform) -> None:
    for k, call in enumerate(calls[WARM_UP_CALLS:]):
        with torch.profiler.record_function(f"call {k}"):
            call()
    platform.synchronize()
