"""What torch.compile makes of a reference: further baselines, by name."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from pkb.errors import UsageError

Solution = Callable[..., Any]

EAGER = "eager"
_PREFIX = "compile-"
COMPILED: dict[str, Callable[[Solution], Solution]] = {
    "compile-default": partial(torch.compile, mode="default"),
    "compile-reduce-overhead": partial(torch.compile, mode="reduce-overhead"),
    "compile-max-autotune": partial(torch.compile, mode="max-autotune"),
    "compile-max-autotune-no-cudagraphs": partial(torch.compile, mode="max-autotune-no-cudagraphs"),
    "compile-cudagraphs": partial(torch.compile, backend="cudagraphs"),
}


def baselines_named(names: str) -> list[str]:
    """From a list with commas; `all` is all of them."""
    chosen = list(COMPILED) if names == "all" else [name for name in names.split(",") if name]
    if unknown := [name for name in chosen if name not in COMPILED]:
        raise UsageError(f"unknown baseline {unknown[0]!r}; choose from all, {', '.join(COMPILED)}")
    return chosen


def modes_named(names: str) -> list[str]:
    """The same by torch's own names for them, and `eager`."""
    known = {mode_of(name): name for name in (EAGER, *COMPILED)}
    chosen = list(known) if names == "all" else [mode_of(name.strip()) for name in names.split(",") if name.strip()]
    if unknown := [mode for mode in chosen if mode not in known]:
        raise UsageError(f"unknown mode {unknown[0]!r}; choose from all, {', '.join(known)}")
    if not chosen:
        raise UsageError(f"no mode named; choose from all, {', '.join(known)}")
    return [known[mode] for mode in dict.fromkeys(chosen)]


def mode_of(baseline: str) -> str:
    return baseline.removeprefix(_PREFIX)


def end_helpers() -> None:
    """End the processes and threads in which torch.compile waits for more to compile; it starts others if need be."""
    if inductor := sys.modules.get("torch._inductor.async_compile"):
        inductor.shutdown_compile_workers()
        if inductor.AsyncCompile.pool.cache_info().currsize:
            inductor.AsyncCompile.pool().shutdown()
            inductor.AsyncCompile.pool.cache_clear()
    progress = sys.modules.get("tqdm")
    if progress and progress.tqdm.monitor:
        progress.tqdm.monitor.exit()
        progress.tqdm.monitor = None
