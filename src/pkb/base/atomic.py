"""Write files whole or not at all, so that a reader never sees half of one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = 40
"""The most characters of a file's name that its temporary file has: the whole name may be as long as names can be."""


def write_whole(path: Path, content: str | bytes) -> None:
    with replace_whole(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replace_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write. It replaces the path if the block succeeds, and is deleted otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:_NAME]}-")
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
