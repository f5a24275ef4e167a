"""The paths that a candidate may see: the system, Python and its packages, pkb, and its own folders."""

import importlib.util
import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from pkb.backends import list_folder_variables

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/sys")
_SETTINGS = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("group", "hosts", "localtime", "nsswitch.conf", "passwd", "nvidia", "OpenCL"),
)
"""Files of /etc that programs need to start. The rest may hold keys."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
"""Folders that are new, empty and writable for each candidate."""
_TOOLS = ("cc", "c++", "gcc", "g++", "nvcc", "ninja")
_FOLDER_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "PKB_PLUGINS")


@cache
def list_readable_paths() -> tuple[str, ...]:
    """Return the existing paths that candidates may read, none of them inside another."""
    python, tools = _list_python_paths(), _list_tool_paths()
    wanted = [*_SYSTEM, *(f"/etc/{name}" for name in _SETTINGS), "/run/opengl-driver", *python, *tools]
    existing = {path for w in wanted for path in (w, os.path.realpath(w)) if os.path.exists(path)}
    return _drop_nested(existing)


def list_device_paths() -> list[str]:
    return [path for path in _DEVICES if os.path.exists(path)]


def _list_python_paths() -> Iterator[str]:
    yield from (sys.prefix, sys.base_prefix)
    yield from (path for path in sys.path if path.endswith("-packages"))
    # Of packages that are installed from a checkout, only the package folders are shown.
    for package in ("pkb", "torch"):
        if (spec := importlib.util.find_spec(package)) and spec.origin:
            yield str(Path(spec.origin).parent)


def _list_tool_paths() -> Iterator[str]:
    """Yield the folders of compilers and CUDA that are not system folders, as on clusters."""
    for tool in filter(None, (os.environ.get("CC"), os.environ.get("CXX"), *_TOOLS)):
        if found := shutil.which(tool):
            folder = os.path.dirname(os.path.realpath(found))
            yield folder
            if not _contains(_find_home(), folder):
                yield os.path.dirname(folder)
    for variable in (*_FOLDER_VARIABLES, *list_folder_variables()):
        for folder in filter(os.path.isabs, os.environ.get(variable, "").split(":")):
            if not _contains(folder, _find_home()):
                yield folder


def _find_home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/nonexistent"


def _contains(outer: str, path: str) -> bool:
    return Path(path).is_relative_to(outer)


def _drop_nested(paths: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for path in sorted(paths, key=len):
        if not any(_contains(outer, path) for outer in kept):
            kept.append(path)
    return tuple(kept)
