"""Folders of libraries on disk, by key: written whole or not at all, and the longest unused make room."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from pkb.base.paths import home

CAP_BYTES = 5 << 30


def root() -> Path:
    return home() / "build"


def touch(entry: Path) -> bool:
    """Whether there is such an entry; if so, it is the newest from now on."""
    with contextlib.suppress(OSError):
        os.utime(entry)
    return entry.is_dir()


def keep(entry: Path, files: list[Path]) -> None:
    """Copy files, each with the folder that it lies in, to a new entry. One that another process kept first stays."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=entry.parent, prefix=".partial-"))
    try:
        for file in files:
            (partial / file.parent.name).mkdir()
            shutil.copyfile(file, partial / file.parent.name / file.name)
        partial.rename(entry)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        if not entry.is_dir():
            raise
    trim(entry.parent)


def trim(folder: Path, cap: int = CAP_BYTES) -> None:
    """Remove the entries longest unused, until the others fit."""
    total = 0
    for entry in sorted(folder.iterdir(), key=_last_used, reverse=True):
        total += _size(entry)
        if total > cap:
            _remove(entry)


def _last_used(entry: Path) -> float:
    # Another process may have removed it meanwhile.
    return entry.stat().st_mtime if entry.exists() else 0.0


def _size(entry: Path) -> int:
    with contextlib.suppress(OSError):
        return sum(file.stat().st_size for file in entry.rglob("*") if file.is_file())
    return 0


def _remove(entry: Path) -> None:
    # Out of sight first: nobody must find half an entry.
    doomed = entry.with_name(f".doomed-{entry.name}")
    with contextlib.suppress(OSError):
        entry.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
