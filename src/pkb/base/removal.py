"""Remove folders that strangers have written to: of any depth, with any names and rights, and never through a link."""

import contextlib
import errno
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

_OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK
_OWNER_RIGHTS = 0o700
_MOST_NAMES = 10_000
"""Subfolders of one folder that are remembered at a time; the others come in the next pass."""

Identity = tuple[int, int]
"""Device and inode of a folder."""


@dataclass
class _Parent:
    """A folder that the pass has to return to."""

    identity: Identity
    child: str
    """The name of the subfolder that the pass has entered."""
    subfolders: list[str]
    """The subfolders that are still to be entered."""


def remove_tree(path: Path | str, seconds: float = 300.0) -> bool:
    """Remove a file, a link or a folder with all that lies below it; return whether nothing is left.

    No link is followed, no file is opened, and no other file system is entered. What cannot be removed stays: this
    function raises no OSError. Folders are handled one at a time, so neither depth nor the length of paths is limited.
    """
    deadline = time.monotonic() + seconds
    while os.path.lexists(path):
        # Another pass finds what was created during the last one, as long as passes get somewhere.
        if not _run_pass(path, deadline) or time.monotonic() > deadline:
            break
    return not os.path.lexists(path)


def _run_pass(path: Path | str, deadline: float) -> int:
    """Remove what can be removed; return the number of entries that have gone."""
    removed = 0
    try:
        folder = _open_folder(os.fspath(path))
    except OSError:
        return _unlink(os.fspath(path))
    with contextlib.suppress(OSError):
        removed = _empty_folder(folder, deadline)
    with contextlib.suppress(OSError):
        os.rmdir(path)
        removed += 1
    return removed


def _empty_folder(folder: int, deadline: float) -> int:
    """Remove what can be removed below an open folder, and close it; return the number of entries that have gone."""
    parents: list[_Parent] = []
    identity = top = _identify(folder)
    removed, subfolders = _remove_files(folder)
    try:
        while True:
            if subfolders and time.monotonic() < deadline:
                name = subfolders.pop()
                with contextlib.suppress(OSError):
                    child = _open_folder(name, folder, top[0])
                    os.close(folder)
                    folder = child
                    parents.append(_Parent(identity, name, subfolders))
                    identity = _identify(folder)
                    count, subfolders = _remove_files(folder)
                    removed += count
            elif parents:
                parent = parents.pop()
                folder = _return_to(parent, folder)
                identity, subfolders = parent.identity, parent.subfolders
                with contextlib.suppress(OSError):
                    os.rmdir(parent.child, dir_fd=folder)
                    removed += 1
            else:
                return removed
    finally:
        os.close(folder)


def _return_to(parent: _Parent, folder: int) -> int:
    """Open the parent of an open folder, and close the folder. Raise OSError if the folder was moved meanwhile."""
    above = os.open("..", _OPENING, dir_fd=folder)
    if _identify(above) != parent.identity:
        os.close(above)
        raise OSError(errno.ESTALE, "a folder was moved while it was being removed")
    os.close(folder)
    return above


def _remove_files(folder: int) -> tuple[int, list[str]]:
    """Remove everything but folders from an open folder; return how many have gone, and the names of its folders."""
    removed, subfolders = 0, []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _is_folder(entry):
                subfolders.append(entry.name)
                if len(subfolders) == _MOST_NAMES:
                    break
            else:
                removed += _unlink(entry.name, folder)
    return removed, subfolders


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        return entry.is_dir(follow_symlinks=False)
    return False


def _unlink(name: str, folder: int | None = None) -> int:
    """Unlink a file; return the number of files that have gone: 1 or 0."""
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)
        return 1
    return 0


def _open_folder(name: str, parent: int | None = None, device: int | None = None) -> int:
    """Open a folder that is no link, and give this user all rights to it. Raise OSError for one of another device."""
    try:
        folder = os.open(name, _OPENING, dir_fd=parent)
    except PermissionError:
        _grant_rights(name, parent)
        folder = os.open(name, _OPENING, dir_fd=parent)
    found = os.fstat(folder)
    if device not in (None, found.st_dev):
        os.close(folder)
        raise OSError(errno.EXDEV, "another file system is mounted there", name)
    if stat.S_IMODE(found.st_mode) & _OWNER_RIGHTS != _OWNER_RIGHTS:
        with contextlib.suppress(OSError):
            os.fchmod(folder, _OWNER_RIGHTS)
    return folder


def _grant_rights(name: str, parent: int | None) -> None:
    """Let this user read and change a folder of its own; a link in its place is not followed."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, _OWNER_RIGHTS, dir_fd=parent, follow_symlinks=False)
        return
    # Linux cannot change the rights of a name without following links, but of a folder that is open as a place only.
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{place}", _OWNER_RIGHTS)
    finally:
        os.close(place)


def _identify(folder: int) -> Identity:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino
