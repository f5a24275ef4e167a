"""Where pkb's own files lie on this machine."""

import os
import site
import sysconfig
from pathlib import Path

_DATA = Path("share", "pkb")
"""Where an installation has what is shipped outside the package: kernels, attempts to cheat."""


def find_cache_folder() -> Path:
    """Return PKB_CACHE, or pkb's folder in the user's cache, in which pkb keeps what it has built or measured."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("PKB_CACHE") or Path(user) / "pkb")


def find_package() -> Path:
    """Return the folder of the package `pkb`."""
    return Path(__file__).parents[1]


def find_checkout() -> Path | None:
    """Return the root of the checkout that the package is used from; None where it is installed."""
    folder = find_package().parents[1]
    return folder if find_package().parent.name == "src" and (folder / "pyproject.toml").is_file() else None


def list_solution_folders() -> list[Path]:
    """Return the existing folders of shipped kernels: the checkout's, or those of installations."""
    return _list_shipped_folders("solutions")


def list_attempt_folders() -> list[Path]:
    """Return the existing folders of the red team's attempts: the checkout's, or those of installations."""
    return _list_shipped_folders("redteam")


def list_installed_data() -> list[Path]:
    """Return the folders of what installations ship outside the package; that of a checkout has copies, too."""
    prefixes = [sysconfig.get_path("data"), site.getuserbase(), *map(str, find_package().parents[:5])]
    found = [Path(prefix) / _DATA for prefix in dict.fromkeys(prefixes)]
    return [folder for folder in found if folder.is_dir()]


def _list_shipped_folders(name: str) -> list[Path]:
    checkout = find_checkout()
    if checkout and (checkout / name).is_dir():
        return [checkout / name]
    return [folder / name for folder in list_installed_data() if (folder / name).is_dir()]
