"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> Path:
    """Write a file so that a reader, or a process that is killed, never leaves or sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    os.chmod(partial, 0o644)
    os.replace(partial, path)
    return path
