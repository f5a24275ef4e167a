"""torch.compile in a rank: compile a reference, and stop the processes that compiled it."""

import sys
from collections.abc import Callable
from typing import Any

import torch

from pkb.protocol.compile_modes import COMPILE_OPTIONS


def compile_solution(solution: Callable[..., Any], baseline: str) -> Callable[..., Any]:
    """Return what torch.compile makes of a solution under the options of this baseline."""
    return torch.compile(solution, **COMPILE_OPTIONS[baseline])


def stop_compile_workers() -> None:
    """Stop the processes and threads in which torch.compile waits for work; it starts others when it needs them."""
    if inductor := sys.modules.get("torch._inductor.async_compile"):
        inductor.shutdown_compile_workers()
        if inductor.AsyncCompile.pool.cache_info().currsize:
            inductor.AsyncCompile.pool().shutdown()
            inductor.AsyncCompile.pool.cache_clear()
    progress = sys.modules.get("tqdm")
    if progress and progress.tqdm.monitor:
        progress.tqdm.monitor.exit()
        progress.tqdm.monitor = None
