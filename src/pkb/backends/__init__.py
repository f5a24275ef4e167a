"""Ways to write a candidate. A backend is one module with a BACKEND, here or in a folder of PKB_PLUGINS."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pkb.base.plugins import list_modules, list_plugin_folders, load_objects
from pkb.errors import UsageError

__path__ += list_plugin_folders("backends")


@dataclass(frozen=True)
class Backend:
    """One way to write a candidate. Only the name is required; docs/adding-a-backend.md follows an example."""

    name: str
    """The name of the module."""
    recognises: Callable[[bytes], bool] = lambda source: False
    """Returns whether a source is of this kind. The torch backend takes what no other backend recognises."""
    find_missing: Callable[[], str | None] = lambda: None
    """Returns what this machine lacks to run such candidates, as an instruction; None when they can run."""
    preference: int = 0
    """Of the backends that recognise a source, the one with the highest preference takes it."""
    kernel_decorators: tuple[str, ...] = ()
    """Decorators that make a function a kernel, for the screen: dotted names, in which * stands for anything."""
    compilers: tuple[str, ...] = ()
    """Functions that compile a source text, for the screen: dotted names, in which * stands for anything."""
    folder_variables: tuple[str, ...] = ()
    """Environment variables that name folders of headers or libraries: candidates may read both."""
    list_headers: Callable[[], list[Path]] = list
    """Returns folders that extensions are compiled against: when a file in them changes, extensions are rebuilt."""
    complete_arguments: Callable[[dict[str, Any]], dict[str, Any]] = lambda arguments: arguments
    """Returns the arguments of torch's `load` or `load_inline` with what extensions of this kind need added."""

    @property
    def has_kernels(self) -> bool:
        """Whether a candidate of this kind is expected to have kernels of its own."""
        return bool(self.kernel_decorators or self.compilers)


@cache
def load_backends() -> dict[str, Backend]:
    """Return all backends by name."""
    found: dict[str, Backend] = load_objects(__name__, __path__, "BACKEND")
    if misnamed := [(module, backend.name) for module, backend in found.items() if module != backend.name]:
        module, name = misnamed[0]
        raise UsageError(f"the backend in {module}.py is named {name!r}; give the file and the backend one name")
    return found


def list_backend_names() -> list[str]:
    """Return the names of all backends, without importing them."""
    return list_modules(__path__)


def find_backend(name: str) -> Backend:
    if name not in load_backends():
        raise UsageError(f"unknown backend {name!r}; choose from {', '.join(load_backends())}")
    return load_backends()[name]


def recognise(source: bytes) -> Backend:
    """Return the backend of a source by what the source says."""
    claims = [backend for backend in load_backends().values() if backend.recognises(source)]
    return max(claims, key=lambda backend: backend.preference, default=find_backend("torch"))


def list_kernel_decorators() -> tuple[str, ...]:
    """Return the kernel decorators of all backends."""
    return tuple(name for backend in load_backends().values() for name in backend.kernel_decorators)


def list_compilers() -> tuple[str, ...]:
    """Return the compilers of all backends."""
    return tuple(name for backend in load_backends().values() for name in backend.compilers)


def list_folder_variables() -> tuple[str, ...]:
    """Return the folder variables of all backends."""
    return tuple(name for backend in load_backends().values() for name in backend.folder_variables)
