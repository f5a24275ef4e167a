"""Replace torch's `load` and `load_inline`, so that each extension is compiled once.

The builder compiles, and ranks import what the builder has compiled. What is still missing is compiled by one rank
while the others wait.
"""

import copy
import fcntl
import functools
import hashlib
import importlib.util
import inspect
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pkb.backends import Backend, find_backend
from pkb.base import toolchain
from pkb.base.compiler_log import trim_log
from pkb.protocol.extension_files import FINISHED
from pkb.protocol.messages import ExtensionOrder

_MOST_JOBS = 8
_LEFT_OUT_OF_KEY = {"build_directory", "verbose", "keep_intermediates", "use_pch"}


class BuildError(RuntimeError):
    """Raised where sources do not compile; a RuntimeError, as torch raises."""

    def __init__(self, name: str, output: str):
        self.errors = trim_log(output)
        super().__init__(f"extension {name!r} does not compile: {self.errors[0]}")


def install_loaders(order: ExtensionOrder, home: Path) -> None:
    """Replace torch's `load` and `load_inline` in this process, before the candidate is imported."""
    # Not at the top: this import looks for GPUs, which the nursery must not.
    from torch.utils import cpp_extension

    os.environ["PATH"] = toolchain.make_search_path()
    os.environ.setdefault("MAX_JOBS", str(min(_MOST_JOBS, os.cpu_count() or 1)))
    if order.architectures:
        os.environ["TORCH_CUDA_ARCH_LIST"] = order.architectures
    loader = ExtensionLoader(Path(order.libraries), Path(order.build_folder), home, find_backend(order.backend))
    loader.build_folder.mkdir(exist_ok=True)
    for name in ("load", "load_inline"):
        setattr(cpp_extension, name, loader.wrap_loader(getattr(cpp_extension, name)))


@dataclass(frozen=True)
class ExtensionLoader:
    libraries: Path
    """Holds what the builder compiled, as <key>/<name>.so."""
    build_folder: Path
    """Holds what ranks compile themselves; all ranks of a world share it."""
    home: Path
    """This process's own folder, in the folder where the world's ranks write, which lies in the world's folder."""
    backend: Backend

    def wrap_loader(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `original`, except that it imports a library that is compiled already."""
        signature = inspect.signature(original)

        @functools.wraps(original)
        def load(*args: Any, **kwargs: Any) -> Any:
            call = signature.bind(*args, **kwargs)
            call.apply_defaults()
            # A copy: torch appends its own lines to the caller's lists.
            arguments = self.backend.complete_arguments(copy.deepcopy(dict(call.arguments)))
            if arguments.get("is_standalone"):
                # A program, not a library: torch compiles it in this rank's folder.
                return original(**arguments)
            folder = self.libraries / self._compute_key(arguments)
            if not folder.is_dir():
                folder = self.build_folder / folder.name
                with _lock(folder):
                    if not (folder / FINISHED).exists():
                        return _compile(original, arguments, folder)
            return _import_library(folder, arguments["is_python_module"])

        return load

    def _compute_key(self, arguments: dict[str, Any]) -> str:
        """Return a digest of all arguments that decide what the library is; this process's folders do not."""
        deciding = {name: value for name, value in arguments.items() if name not in _LEFT_OUT_OF_KEY}
        if "sources" in deciding:
            files = [deciding["sources"]] if isinstance(deciding["sources"], str) else deciding["sources"]
            deciding["sources"] = [(Path(file).name, Path(file).read_text(errors="replace")) for file in files]
        text = json.dumps(deciding, sort_keys=True, default=str)
        for folder in (self.home, self.home.parent, self.home.parent.parent):
            text = text.replace(str(folder), "")
        return hashlib.sha256(text.encode()).hexdigest()


def _compile(original: Callable[..., Any], arguments: dict[str, Any], folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    # Quiet, or the errors would go to the log; without precompiled headers, which torch keeps in its installation.
    ours = {"build_directory": str(folder), "verbose": False} | ({"use_pch": False} if "use_pch" in arguments else {})
    try:
        return original(**arguments | ours)
    except RuntimeError as error:
        if not str(error).startswith("Error building extension"):
            raise
        raise BuildError(arguments["name"], str(error).replace(f"{folder}/", "")) from None
    finally:
        # Also when the library cannot be imported here: compiling it again would not help.
        if any(folder.glob("*.so")):
            (folder / FINISHED).touch()


def _import_library(folder: Path, is_python_module: bool) -> Any:
    # Torch may have chosen another name for the library than the candidate did.
    (library,) = folder.glob("*.so")
    if not is_python_module:
        torch.ops.load_library(str(library))
        return str(library)
    spec = importlib.util.spec_from_file_location(library.stem, library)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with open(f"{folder}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
