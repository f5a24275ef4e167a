"""What a candidate may see of the file system: the system, Python and its packages, pkb, and its own folders."""

import importlib.util
import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/sys")
_SETTINGS = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("group", "hosts", "localtime", "nsswitch.conf", "passwd", "nvidia", "OpenCL"),
)
"""Of /etc: what programs need to start. The rest may hold keys."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")
"""Empty for a candidate, and its own."""
_TOOLS = ("cc", "c++", "gcc", "g++", "nvcc", "ninja")
_FOLDER_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "THUNDERKITTENS_ROOT")


@cache
def readable() -> tuple[str, ...]:
    """Existing paths, none of them inside another."""
    wanted = [*_SYSTEM, *(f"/etc/{name}" for name in _SETTINGS), "/run/opengl-driver", *_python(), *_tools()]
    existing = {path for w in wanted for path in (w, os.path.realpath(w)) if os.path.exists(path)}
    return _outermost(existing)


def devices() -> list[str]:
    return [path for path in _DEVICES if os.path.exists(path)]


def _python() -> Iterator[str]:
    yield from (sys.prefix, sys.base_prefix)
    yield from (path for path in sys.path if path.endswith("-packages"))
    # Where these are installed from a checkout, only the packages themselves are shown of it.
    for package in ("pkb", "torch"):
        if (spec := importlib.util.find_spec(package)) and spec.origin:
            yield str(Path(spec.origin).parent)


def _tools() -> Iterator[str]:
    """Where compilers and CUDA live when that is not a system folder, as on clusters."""
    for tool in filter(None, (os.environ.get("CC"), os.environ.get("CXX"), *_TOOLS)):
        if found := shutil.which(tool):
            folder = os.path.dirname(os.path.realpath(found))
            yield folder
            if not _holds(_home(), folder):
                yield os.path.dirname(folder)
    for variable in _FOLDER_VARIABLES:
        for folder in filter(os.path.isabs, os.environ.get(variable, "").split(":")):
            if not _holds(folder, _home()):
                yield folder


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/nonexistent"


def _holds(outer: str, path: str) -> bool:
    return Path(path).is_relative_to(outer)


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for path in sorted(paths, key=len):
        if not any(_holds(outer, path) for outer in kept):
            kept.append(path)
    return tuple(kept)
