"""Files that are written whole or not at all, so that a reader never sees half of one."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(partial, 0o644)
    os.replace(partial, path)
