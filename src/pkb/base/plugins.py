"""Finds modules that hold one object each: in a package's own folder, and in the folders that PKB_PLUGINS names."""

import importlib
import importlib.util
import os
import pkgutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pkb.errors import UsageError

VARIABLE = "PKB_PLUGINS"
"""Folders, separated as in PATH. Each may have the subfolders `backends`, `checks`, `engines`, `platforms`,
`report_sections`."""


def list_plugin_folders(kind: str) -> list[str]:
    """Return the existing subfolders of this name in the folders of PKB_PLUGINS."""
    folders = [Path(folder).absolute() / kind for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    return [str(folder) for folder in folders if folder.is_dir()]


def list_modules(path: Iterable[str]) -> list[str]:
    """Return the names of a package's modules in alphabetical order, without those that begin with an underscore."""
    return sorted(module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_"))


def load_objects(package: str, path: Iterable[str], name: str) -> dict[str, Any]:
    """Import every module of a package, and return by module the object that each of them calls `name`."""
    return {module: load_object(f"{package}.{module}", name) for module in list_modules(path)}


def load_object(module: str, name: str) -> Any:
    """Import a module and return what it calls `name`. Raises UsageError where either fails."""
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:
        spec = importlib.util.find_spec(module)
        file = spec.origin if spec else module
        raise UsageError(f"{file} cannot be loaded: {type(error).__name__}: {error}; it must define {name}") from error
