"""Read what strangers may have written, and write to their folders: nothing without end, nothing through a link."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from pkb.base.plain_files import FileTooLarge, open_plain_file, read_plain_file
from pkb.base.printable import clean_line
from pkb.errors import UsageError

RECORD_BYTES = 16 << 20
"""The most bytes of a record, or of another JSON file of a run."""
SOURCE_BYTES = 16 << 20
"""The most bytes of a candidate or of a problem file."""
_OPENING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


def read_own_file(path: Path | str, most_bytes: int) -> bytes:
    """Return the content of a file in a folder whose content others chose.

    Raises OSError for a file that cannot be opened, and ValueError for a symbolic link, for what is no regular file,
    and for more than `most_bytes`.
    """
    try:
        handle = os.open(path, _OPENING)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ValueError("it is a symbolic link, which is not followed; copy the file that it points to") from None
    try:
        return _read_handle(handle, most_bytes)
    finally:
        os.close(handle)


def read_named_file(path: Path | str, most_bytes: int) -> bytes:
    """Return the content of a file that the user named, where a link is the user's own. Raises the same errors."""
    _check_kind(path)
    return read_plain_file(Path(os.path.realpath(path)), most_bytes)


def open_named_file(path: Path) -> BinaryIO:
    """Open a file that the user named, to be read in pieces. Raises OSError, or ValueError for no regular file."""
    _check_kind(path)
    return open_plain_file(Path(os.path.realpath(path)))


def read_end(path: Path, most_bytes: int) -> tuple[bytes, int]:
    """Return the last bytes of a file that is no link, and the size of the file. Raises OSError and ValueError."""
    with open_plain_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - most_bytes))
        return file.read(most_bytes), size


def parse_json(content: bytes | str) -> Any:
    """Return the value of a JSON text in UTF-8. Raises ValueError where it is none, or where a key appears twice."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_make_object)
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None


def make_own_folder(folder: Path) -> None:
    """Create a folder to write to. Raises UsageError where it, or the folder above it, is a symbolic link.

    A run that a stranger packed may hold a link, and what is written through it would end outside the run.
    """
    for one in (folder, folder.parent):
        if one.is_symlink():
            raise UsageError(
                f"{one} is a symbolic link, through which nothing is written; remove it, or choose another folder"
            )
    folder.mkdir(parents=True, exist_ok=True)


def describe_error(error: Exception) -> str:
    """Return in words why a file could not be read; the message does not repeat the file's name."""
    return str(getattr(error, "strerror", None) or error)


def _read_handle(handle: int, most_bytes: int) -> bytes:
    """Return all of an open file. A run may have 100 000 of them: there is no faster way in Python."""
    found = os.fstat(handle)
    _check_mode(found.st_mode)
    left = most_bytes + 1 if found.st_size <= most_bytes else 0
    pieces = []
    while left > 0 and (piece := os.read(handle, min(left, max(found.st_size + 1, 1 << 12)))):
        pieces.append(piece)
        left -= len(piece)
    if left <= 0:
        raise FileTooLarge(f"it has more than {most_bytes >> 20} MiB")
    return b"".join(pieces)


def _check_kind(path: Path | str) -> None:
    """Raise ValueError for what is no file, before it is opened: to open a device may already do something."""
    _check_mode(os.stat(path).st_mode)


def _check_mode(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise ValueError(f"it is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file")


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the key {clean_line(_find_repeated(pairs), 80)!r} appears twice in one object")
    return found


def _find_repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            break
        seen.add(name)
    return name
