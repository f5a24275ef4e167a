"""Importing this module makes Triton ready to compile and launch in ranks that are forked afterwards.

Without it, Triton compiles the same C file in each rank, reads its own library for a key, and loads its passes: this
takes a second before the first launch. Nothing here touches a GPU.
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
def _empty_kernel(pointer):  # type: ignore[no-untyped-def]
    """An empty kernel, without annotations: Triton reads them."""
    return


def use_driver() -> None:
    driver = importlib.import_module("triton.backends.nvidia.driver")
    triton.runtime.driver.set_active(driver.CudaDriver())


def compile_once() -> None:
    """Compile an empty kernel for some GPU."""
    # Triton imports this module when it specialises a kernel's arguments for the first time.
    importlib.import_module("triton.experimental.gluon")
    triton.compile(ASTSource(_empty_kernel, {"pointer": "*fp32"}, {}), target=GPUTarget("cuda", 90, 32))


def build_launchers_quickly() -> None:
    """Halve the time of compiling launchers in releases of Triton that have one in C for every kernel, such as 3.6."""
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
    """Build with -O0 what Triton builds with -O3: a launcher only passes arguments on."""
    library = os.path.join(folder, f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}")
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or "cc"
    # Debian's own scheme has no folder of headers.
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")
    headers = [*include_folders, folder, sysconfig.get_paths(scheme)["include"]]
    flags = [f"-l:{needed}" if ".so" in needed else f"-l{needed}" for needed in libraries]
    places = [f"-I{place}" for place in headers] + [f"-L{place}" for place in library_folders]
    command = [compiler, source, "-O0", "-shared", "-fPIC", "-Wno-psabi", *flags, *places, "-o", library]
    subprocess.check_call(command, stdout=subprocess.DEVNULL)
    return library


for step in (use_driver, build_launchers_quickly, compile_once):
    # Where a step fails, such as without a C compiler, Triton itself names the reason to a candidate that uses it.
    with contextlib.suppress(Exception):
        step()
