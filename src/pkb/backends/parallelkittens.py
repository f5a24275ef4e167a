"""ParallelKittens: CUDA written with the headers of a ThunderKittens checkout."""

import os
import re
from pathlib import Path
from typing import Any

from pkb.backends import Backend
from pkb.base import toolchain
from pkb.base.python_source import strings

ROOT = "THUNDERKITTENS_ROOT"
_SAYS = re.compile(rf"""#\s*include\s*[<"](kittens|prototype)\.cuh[>"]|{ROOT}""")
_HOPPER = 9.0
_NVCC_FLAGS = (
    "-std=c++20",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "-DKITTENS_HOPPER",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-Xcompiler=-Wno-psabi",
    "-Xcompiler=-fno-strict-aliasing",
)
# A source that says the first of these, for itself, is not given ours.
_CHOICES = ("-std=", "-DKITTENS_", "arch")


def recognises(source: bytes) -> bool:
    return any(_SAYS.search(text) for text in strings(source))


def missing() -> str | None:
    if not any((folder / "kittens.cuh").is_file() for folder in headers()):
        return f"ParallelKittens needs ThunderKittens: set {ROOT} to a checkout (a folder that has include/kittens.cuh)"
    if not toolchain.nvcc():
        return "ParallelKittens needs nvcc: install the CUDA toolkit, and set CUDA_HOME or put nvcc on the PATH"
    if not any(float(capability) >= _HOPPER for capability in toolchain.compute_capabilities()):
        return "ParallelKittens needs an H100-class GPU (compute capability 9.0 or later): use a machine that has one"
    return None


def headers() -> list[Path]:
    root = os.environ.get(ROOT)
    return [Path(root) / "include", Path(root) / "prototype"] if root else []


def arguments(given: dict[str, Any]) -> dict[str, Any]:
    """The source's own choices stand; ThunderKittens also calls the driver, so libcuda is linked."""
    flags = list(given["extra_cuda_cflags"] or [])
    linked = list(given["extra_ldflags"] or [])
    return given | {
        "extra_include_paths": [*(given["extra_include_paths"] or []), *map(str, headers())],
        "extra_cuda_cflags": flags + [flag for flag in _NVCC_FLAGS if not _chosen(flag, flags)],
        "extra_ldflags": linked if "-lcuda" in linked else [*linked, *_driver_stub(), "-lcuda"],
    }


def _chosen(ours: str, flags: list[str]) -> bool:
    same_choice = [choice for choice in _CHOICES if choice in ours]
    return ours in flags or any(choice in flag for choice in same_choice for flag in flags)


def _driver_stub() -> list[str]:
    """Where the toolkit keeps a libcuda to link with: the driver need not bring one."""
    nvcc = toolchain.nvcc()
    return [f"-L{Path(nvcc).resolve().parents[1] / 'lib64' / 'stubs'}"] if nvcc else []


BACKEND = Backend("parallelkittens", recognises, missing, preference=1, headers=headers, arguments=arguments)
