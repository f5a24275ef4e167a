"""ParallelKittens: CUDA written with the headers of a ThunderKittens checkout."""

import os
import re
from pathlib import Path
from typing import Any

from pkb.backends import Backend
from pkb.base import toolchain
from pkb.base.python_source import find_strings

ROOT = "THUNDERKITTENS_ROOT"
_MENTIONS = re.compile(rf"""#\s*include\s*[<"](kittens|prototype)\.cuh[>"]|{ROOT}""")
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
_CHOICES = ("-std=", "-DKITTENS_", "arch")
"""Parts of flags: where a source has a flag with one of them, our flag with it is not added."""


def recognises(source: bytes) -> bool:
    return any(_MENTIONS.search(text) for text in find_strings(source))


def find_missing() -> str | None:
    if not any((folder / "kittens.cuh").is_file() for folder in list_headers()):
        return f"ParallelKittens needs ThunderKittens: set {ROOT} to a checkout (a folder that has include/kittens.cuh)"
    if not toolchain.find_nvcc():
        return "ParallelKittens needs nvcc: install the CUDA toolkit, and set CUDA_HOME or put nvcc on the PATH"
    if not any(float(capability) >= _HOPPER for capability in toolchain.query_compute_capabilities()):
        return "ParallelKittens needs an H100-class GPU (compute capability 9.0 or later): use a machine that has one"
    return None


def list_headers() -> list[Path]:
    root = os.environ.get(ROOT)
    return [Path(root) / "include", Path(root) / "prototype"] if root else []


def complete_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Add headers, flags that the source does not choose itself, and libcuda: ThunderKittens calls the driver."""
    flags = list(arguments["extra_cuda_cflags"] or [])
    linked = list(arguments["extra_ldflags"] or [])
    return arguments | {
        "extra_include_paths": [*(arguments["extra_include_paths"] or []), *map(str, list_headers())],
        "extra_cuda_cflags": flags + [flag for flag in _NVCC_FLAGS if not _is_chosen(flag, flags)],
        "extra_ldflags": linked if "-lcuda" in linked else [*linked, *_link_driver_stub(), "-lcuda"],
    }


def _is_chosen(ours: str, flags: list[str]) -> bool:
    """Return whether the source's own flags make the choice that one of our flags makes."""
    same_choice = [choice for choice in _CHOICES if choice in ours]
    return ours in flags or any(choice in flag for choice in same_choice for flag in flags)


def _link_driver_stub() -> list[str]:
    """Return the flag for the toolkit's own libcuda: the driver need not be installed where a candidate is linked."""
    nvcc = toolchain.find_nvcc()
    return [f"-L{Path(nvcc).resolve().parents[1] / 'lib64' / 'stubs'}"] if nvcc else []


BACKEND = Backend(
    "parallelkittens",
    recognises,
    find_missing,
    preference=1,
    compilers=("torch.utils.cpp_extension.load_inline", "utils.cuda_helpers.compile_cuda_extension"),
    folder_variables=(ROOT,),
    list_headers=list_headers,
    complete_arguments=complete_arguments,
)
