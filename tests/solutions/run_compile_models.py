"""Compile the Triton kernels that a ModelNew launches at the published size for a GPU that need not be there.

    python tests/run_compile_models.py float32 FILE...

The interpreter accepts more than the compiler does. Tensors have shapes and no memory; nothing is launched.
Prints a line per kernel.
"""

import sys
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from pkb.problems.suite import load_problem
from pkb.rank.bootstrap import import_candidate

HOPPER = GPUTarget("cuda", 90, 32)


class NoDriver:
    """What Triton asks of a driver before it compiles."""

    def get_current_target(self) -> GPUTarget:
        return HOPPER

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def compile_only() -> list[Any]:
    """From now on launches only compile; what they made."""
    made: list[Any] = []
    triton.runtime.driver.set_active(NoDriver())
    run = JITFunction.run

    def warm(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        made.append((self.fn.__name__, run(self, *args, grid=grid, warmup=True, **kwargs)))

    JITFunction.run = warm  # type: ignore[method-assign]
    return made


def call(path: Path, dtype: torch.dtype) -> None:
    task = import_candidate(load_problem(path.stem.removesuffix("_triton")).path)
    with torch.device("meta"), torch.no_grad():
        import_candidate(path).ModelNew(*task.get_init_inputs()).to(dtype)(
            *(cast(arg, dtype) for arg in task.get_inputs())
        )


def cast(arg: Any, dtype: torch.dtype) -> Any:
    return arg.to(dtype) if isinstance(arg, Tensor) and arg.is_floating_point() else arg


def main() -> None:
    made = compile_only()
    for path in map(Path, sys.argv[2:]):
        call(path, getattr(torch, sys.argv[1]))
        for name, kernel in made:
            print(f"{path.stem} {name}: {kernel.metadata.shared} bytes shared, {kernel.metadata.num_warps} warps")
        made.clear()


if __name__ == "__main__":
    main()
