"""torch's `load` and `load_inline`, made to compile once: ranks only import what the builder has compiled.

Used by the builder and by ranks alike. What was not compiled ahead is compiled by one rank while the others wait.
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

from pkb.backends import Backend, backend_named
from pkb.base import toolchain
from pkb.base.python_source import imported, strings
from pkb.rank import compiler_errors as compiler

MODULE = "torch.utils.cpp_extension"
NEEDED = ("setuptools.command.build_ext", "torch.utils.hipify.hipify_python")
"""What it imports, for a good part of a second; that may be done before there is a GPU, unlike importing it."""
FINISHED = "finished"
"""The file beside a library that has been compiled to its end."""

_MOST_JOBS = 8
_UNKEYED = {"build_directory", "verbose", "keep_intermediates", "use_pch"}


class BuildError(RuntimeError):
    """Sources that do not compile. A RuntimeError, as torch raises."""

    def __init__(self, name: str, output: str):
        self.errors = compiler.errors(output)
        super().__init__(f"extension {name!r} does not compile: {self.errors[0]}")


def compiles(source: bytes) -> bool:
    """Whether a candidate may call torch's `load` or `load_inline`."""
    return MODULE in imported(source) or MODULE in strings(source)


def install(libraries: str, workshop: str, home: Path, backend: str, architectures: str | None) -> None:
    """Replace torch's functions in this process, before the candidate is imported."""
    # Not before: importing it asks for the GPUs, which the nursery must not.
    from torch.utils import cpp_extension

    os.environ["PATH"] = toolchain.search_path()
    os.environ.setdefault("MAX_JOBS", str(min(_MOST_JOBS, os.cpu_count() or 1)))
    if architectures:
        os.environ["TORCH_CUDA_ARCH_LIST"] = architectures
    extensions = Extensions(Path(libraries), Path(workshop), home, backend_named(backend))
    extensions.workshop.mkdir(exist_ok=True)
    for name in ("load", "load_inline"):
        setattr(cpp_extension, name, extensions.once(getattr(cpp_extension, name)))


@dataclass(frozen=True)
class Extensions:
    libraries: Path
    """Compiled ahead: <key>/<name>.so."""
    workshop: Path
    """Where the rest is compiled, shared by all ranks of a world."""
    home: Path
    """This process's own folder, inside the world's."""
    backend: Backend

    def once(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`original`, taking the library from the cache or the workshop when it is there."""
        signature = inspect.signature(original)

        @functools.wraps(original)
        def load(*args: Any, **kwargs: Any) -> Any:
            call = signature.bind(*args, **kwargs)
            call.apply_defaults()
            # A copy: torch adds its own lines to the caller's lists.
            given = self.backend.arguments(copy.deepcopy(dict(call.arguments)))
            if given.get("is_standalone"):
                # A program, not a library: torch's own way, in this rank's folder.
                return original(**given)
            folder = self.libraries / self._key(given)
            if not folder.is_dir():
                folder = self.workshop / folder.name
                with _locked(folder):
                    if not (folder / FINISHED).exists():
                        return _compiled(original, given, folder)
            return _imported(folder, given["is_python_module"])

        return load

    def _key(self, given: dict[str, Any]) -> str:
        """Of all that decides what the library is. Folders differ between processes, so their names do not count."""
        kept = {name: value for name, value in given.items() if name not in _UNKEYED}
        if "sources" in kept:
            files = [kept["sources"]] if isinstance(kept["sources"], str) else kept["sources"]
            kept["sources"] = [(Path(file).name, Path(file).read_text(errors="replace")) for file in files]
        text = json.dumps(kept, sort_keys=True, default=str)
        for folder in (self.home, self.home.parent):
            text = text.replace(str(folder), "")
        return hashlib.sha256(text.encode()).hexdigest()


def _compiled(original: Callable[..., Any], given: dict[str, Any], folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    # Quiet, or the errors would go to the log; without precompiled headers, which torch keeps in its installation.
    ours = {"build_directory": str(folder), "verbose": False} | ({"use_pch": False} if "use_pch" in given else {})
    try:
        return original(**given | ours)
    except RuntimeError as error:
        if not str(error).startswith("Error building extension"):
            raise
        raise BuildError(given["name"], str(error).replace(f"{folder}/", "")) from None
    finally:
        # Also when it cannot be imported here: compiling it again would not help.
        if any(folder.glob("*.so")):
            (folder / FINISHED).touch()


def _imported(folder: Path, is_python_module: bool) -> Any:
    # Torch may have given it another name than it was asked for.
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
def _locked(folder: Path) -> Iterator[None]:
    with open(f"{folder}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
