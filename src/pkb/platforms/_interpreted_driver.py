"""A driver for Triton's interpreter, without which autotuned kernels fail for lack of a GPU.

Each configuration is run once, and all count as equally fast: times of the interpreter say nothing about a GPU, and
all ranks have to choose the same configuration. So the first one that works is chosen. A kernel that must not run more
than once on the same arguments shows its fault here as on a GPU.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime.errors import InterpreterError

_MILLISECONDS = 1.0


def install_driver() -> None:
    """Make Triton of this process benchmark with the interpreter, in autotuned kernels and in candidates' own code."""
    triton.runtime.driver.set_active(InterpretedDriver())
    for name in ("do_bench", "do_bench_cudagraph"):
        if hasattr(triton.testing, name):
            setattr(triton.testing, name, run_once)


class InterpretedDriver(DriverBase):
    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError("the interpreter compiles nothing")

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cpu", 0, 1)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cpu

    def get_benchmarker(self) -> Callable[..., Any]:
        return run_once


def run_once(
    call: Callable[[], Any],
    *_: Any,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **__: Any,
) -> float | list[float]:
    """Run a kernel once, and return the same time for every kernel that does not fail an assertion.

    Triton leaves out configurations that its compiler refuses, which an infinite time makes it do here.
    """
    try:
        call()
        found = _MILLISECONDS
    except InterpreterError as error:
        if not _is_assertion(error):
            raise
        found = float("inf")
    if quantiles is not None and len(quantiles) != 1:
        return [found] * len(quantiles)
    return [found] if quantiles is None and return_mode == "all" else found


def _is_assertion(error: BaseException | None) -> bool:
    """Return whether an assertion of the kernel, such as tl.static_assert, is the cause of an error."""
    while error is not None:
        if isinstance(error, AssertionError):
            return True
        error = error.__cause__
    return False
