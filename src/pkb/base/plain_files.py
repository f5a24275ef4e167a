"""Read files from folders that strangers can write to: a link is not followed, and a pipe does not block the reader."""

import os
import stat
from pathlib import Path
from typing import BinaryIO


class FileTooLarge(ValueError):
    """A file has more bytes than its reader wants."""


def open_plain_file(path: Path) -> BinaryIO:
    """Open a file for reading. Raise OSError for what cannot be opened, and ValueError for what is no plain file."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError("it is not a file")
    return open(handle, "rb")


def read_plain_file(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file. Raise OSError, ValueError for what is no plain file, or FileTooLarge."""
    with open_plain_file(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise FileTooLarge(f"it has more than {most_bytes >> 20} MiB")
    return content
