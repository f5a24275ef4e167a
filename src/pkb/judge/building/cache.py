"""A cache of compiled libraries on disk: entries are written atomically, and the least recently used are evicted."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from pkb.base.paths import find_cache_folder
from pkb.base.plain_files import open_plain_file
from pkb.base.removal import remove_tree

CAP_BYTES = 5 << 30
"""The size above which entries are evicted."""


def find_root() -> Path:
    return find_cache_folder() / "build"


def touch(entry: Path) -> bool:
    """Mark an entry as just used. Return whether it exists."""
    with contextlib.suppress(OSError):
        os.utime(entry)
    return entry.is_dir()


def store(entry: Path, files: list[Path]) -> None:
    """Copy files, each with the folder that it lies in, to a new entry; an entry of another process stays."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=entry.parent, prefix=".partial-"))
    try:
        for file in files:
            (partial / file.parent.name).mkdir(exist_ok=True)
            with open_plain_file(file) as source, open(partial / file.parent.name / file.name, "wb") as copy:
                shutil.copyfileobj(source, copy)
        partial.rename(entry)
    except (OSError, ValueError):
        remove_tree(partial)
        if not entry.is_dir():
            raise
    trim(entry.parent)


def trim(folder: Path, cap: int = CAP_BYTES) -> None:
    """Remove the least recently used entries, until the others fit into `cap` bytes."""
    total = 0
    for entry in sorted(folder.iterdir(), key=_find_last_use, reverse=True):
        total += _measure_size(entry)
        if total > cap:
            _remove(entry)


def _find_last_use(entry: Path) -> float:
    # Another process may have removed the entry meanwhile.
    return entry.stat().st_mtime if entry.exists() else 0.0


def _measure_size(entry: Path) -> int:
    with contextlib.suppress(OSError):
        return sum(file.stat().st_size for file in entry.rglob("*") if file.is_file())
    return 0


def _remove(entry: Path) -> None:
    # Renamed first, so that no process finds half an entry.
    doomed = entry.with_name(f".doomed-{entry.name}")
    with contextlib.suppress(OSError):
        entry.rename(doomed)
    remove_tree(doomed)
