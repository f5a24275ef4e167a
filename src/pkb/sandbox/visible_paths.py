"""The paths that a candidate may see: the system, Python and its packages, three libraries of pkb, its own folders.

Nothing else of ours is shown, wherever it lies: a rank has imported what it needs before it is confined.
"""

import importlib.util
import os
import pwd
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pkb.backends import list_folder_variables
from pkb.base.paths import find_cache_folder, find_checkout, find_package, list_installed_data

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
_FOLDER_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")
_LIBRARIES = ("triton_lib.py", "symmetric.py", "cuda_lib", "published_lib")
_RANK_PARTS = (
    *(
        "__init__.py",
        "errors.py",
        "display.py",
        "settings.py",
        "base",
        "problems",
        "hardware",
        "backends",
        "platforms",
        "sandbox",
    ),
    *("protocol", "checks", "rank", "nursery", "suites/parallel/_shared"),
)


class Ours(Enum):
    """How much of pkb's own files is shown."""

    NOTHING = "nothing"
    LIBRARIES = "libraries"
    """The libraries for people who write candidates."""
    PROGRAM = "program"
    """What the nursery and the programs of ranks import too, for those that start inside the sandbox: under
    bubblewrap, and under a profiler, which follows only a rank that is a program of its own."""


class PathRule(NamedTuple):
    path: str
    is_shown: bool
    """Whether the path and what lies below it are shown or hidden, until a rule for a path further down."""


def list_rules(ours: Ours = Ours.LIBRARIES, readable: Sequence[str] = (), hidden: Sequence[str] = ()) -> list[PathRule]:
    """Return what is shown, and what is hidden inside of that, outer paths first; what no rule names is hidden.

    `readable` and `hidden` are paths besides those of the system, of Python and of pkb.
    """
    shown = {*_list_system_paths(), *(path for name in readable for path in _spell(name))}
    closed = {path for name in (*_list_hidden_paths(), *hidden) for path in _spell_inside(name, shown)}
    wanted = dict.fromkeys(closed, False) | dict.fromkeys(shown, True) | dict.fromkeys(_list_own_paths(ours), True)
    rules: dict[str, bool] = {}
    for path in sorted(wanted, key=lambda path: len(Path(path).parts)):
        if wanted[path] != _is_shown(path, rules):
            rules[path] = wanted[path]
    return [PathRule(path, is_shown) for path, is_shown in rules.items()]


def list_open_paths(rules: Sequence[PathRule]) -> tuple[list[str], list[str]]:
    """Return the same as paths that are shown whole, and folders of which only the names inside may be listed."""
    closed = [rule.path for rule in rules if not rule.is_shown]
    whole: list[str] = []
    # Python lists a package's folder before it imports from it.
    listed = [str(find_package())] if any(Path(rule.path).parent == find_package() for rule in rules) else []
    for path in (rule.path for rule in rules if rule.is_shown):
        _open(path, closed, whole, listed)
    return whole, listed


def is_visible(folder: str) -> bool:
    """Return whether a candidate sees what lies in a folder, unless that is hidden by a rule of its own."""
    return _is_shown(os.path.join(folder, "file"), dict(list_rules()))


def list_device_paths() -> list[str]:
    return [path for path in _DEVICES if os.path.exists(path)]


@cache
def _list_system_paths() -> frozenset[str]:
    """Return the existing paths of the system, Python and tools that candidates may read."""
    python, tools = _list_python_paths(), _list_tool_paths()
    wanted = [*_SYSTEM, *(f"/etc/{name}" for name in _SETTINGS), "/run/opengl-driver", *python, *tools]
    return frozenset(path for name in wanted for path in _spell(name))


@cache
def _list_hidden_paths() -> tuple[str, ...]:
    """Return the folders of ours: the package, the checkout, shipped data, what was built and measured."""
    package, checkout = find_package(), find_checkout()
    installed = package.parent.glob("parallelkernelbench-*")
    found = [package, *([checkout] if checkout else []), *list_installed_data(), find_cache_folder(), *installed]
    return tuple(map(str, [*found, *_list_plugin_paths()]))


def _list_own_paths(ours: Ours) -> list[str]:
    names = {Ours.NOTHING: (), Ours.LIBRARIES: _LIBRARIES, Ours.PROGRAM: (*_LIBRARIES, *_RANK_PARTS)}[ours]
    found = [str(find_package() / name) for name in names]
    plugins = _list_plugin_paths() if ours is Ours.PROGRAM else []
    return [path for name in (*found, *plugins) for path in _spell(name)]


def _list_plugin_paths() -> list[str]:
    return [folder for folder in os.environ.get("PKB_PLUGINS", "").split(":") if os.path.isabs(folder)]


def _list_python_paths() -> Iterator[str]:
    yield from (sys.prefix, sys.base_prefix)
    yield from (path for path in sys.path if path.endswith("-packages"))
    # Where torch is installed from a checkout, only its package's folder is shown.
    if (spec := importlib.util.find_spec("torch")) and spec.origin:
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


def _spell(name: str) -> Iterator[str]:
    """Yield an existing path as it is written, and with all links resolved."""
    if os.path.lexists(name):
        yield os.path.normpath(name)
    if os.path.exists(name):
        yield os.path.realpath(name)


def _spell_inside(name: str, shown: Collection[str]) -> Iterator[str]:
    """Yield an existing path in every way that leads to it through a shown folder whose own name has links."""
    for path in _spell(name):
        yield path
        yield from (
            os.path.normpath(os.path.join(outer, os.path.relpath(path, real)))
            for outer in shown
            if (real := os.path.realpath(outer)) != outer and not os.path.islink(outer) and _contains(real, path)
        )


def _is_shown(path: str, rules: Mapping[str, bool]) -> bool:
    """Return whether the innermost rule for a folder around this path shows it."""
    return next((rules[outer] for outer in map(str, Path(path).parents) if outer in rules), False)


def _open(path: str, closed: Iterable[str], whole: list[str], listed: list[str]) -> None:
    """Add to `whole` everything below a path that no closed path contains, or leads to."""
    inside = [name for name in closed if _contains(path, os.path.realpath(name)) or _contains(path, name)]
    if path in inside:
        return
    if not inside:
        whole.append(path)
        return
    listed.append(path)
    for entry in os.scandir(path):
        if entry.is_symlink():
            # A rule for a link would be one for its target, which has its own rule if it is shown.
            continue
        _open(entry.path, inside, whole, listed)


def _contains(outer: str, path: str) -> bool:
    return Path(path).is_relative_to(outer)
