"""Importing this makes Triton ready to compile and launch, in ranks that are forked afterwards.

In each of them, Triton would otherwise compile the same C file, read its own library for a key, and load its passes:
a second before the first launch. Nothing here touches a GPU.
"""

import contextlib
import importlib

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def _nothing(pointer):  # type: ignore[no-untyped-def]
    """Triton reads annotations, too."""
    return


def use_driver() -> None:
    driver = importlib.import_module("triton.backends.nvidia.driver")
    triton.runtime.driver.set_active(driver.CudaDriver())


def compile_once() -> None:
    """Anything, for whatever GPU."""
    # Looked for when arguments are first told apart.
    importlib.import_module("triton.experimental.gluon")
    triton.compile(ASTSource(_nothing, {"pointer": "*fp32"}, {}), target=GPUTarget("cuda", 90, 32))


for step in (use_driver, compile_once):
    # Without a C compiler, say, a candidate that uses Triton hears the reason from Triton itself.
    with contextlib.suppress(Exception):
        step()
