"""Importing this makes Triton ready to compile and launch, in ranks that are forked afterwards.

In each of them, Triton would otherwise compile the same C file, read its own library for a key, and load its passes:
a second before the first launch. Nothing here touches a GPU.
"""

import contextlib
import importlib
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence

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


def launch_soon() -> None:
    """Where Triton compiles a launcher in C for every kernel, as 3.6 does, have it done in half the time."""
    driver = importlib.import_module("triton.backends.nvidia.driver")
    if hasattr(driver, "make_launcher"):
        triton.knobs.build.impl = build_unoptimised


def build_unoptimised(
    name: str,
    source: str,
    folder: str,
    library_folders: Sequence[str],
    include_folders: Sequence[str],
    libraries: Sequence[str],
) -> str:
    """What Triton builds with -O3: code that only hands arguments on."""
    library = os.path.join(folder, f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}")
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or "cc"
    # Debian's own scheme knows no headers.
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")
    headers = [*include_folders, folder, sysconfig.get_paths(scheme)["include"]]
    named = [f"-l:{needed}" if ".so" in needed else f"-l{needed}" for needed in libraries]
    places = [f"-I{place}" for place in headers] + [f"-L{place}" for place in library_folders]
    command = [compiler, source, "-O0", "-shared", "-fPIC", "-Wno-psabi", *named, *places, "-o", library]
    subprocess.check_call(command, stdout=subprocess.DEVNULL)
    return library


for step in (use_driver, launch_soon, compile_once):
    # Without a C compiler, say, a candidate that uses Triton hears the reason from Triton itself.
    with contextlib.suppress(Exception):
        step()
