"""Samples on disk: `<run>/<problem>/<model>-<number>/` with prompt.md, response.md, candidate.py and sample.json.

sample.json is written last: where it is, the sample is complete. A lock on `.claim` says who is asking for one; it
ends with the process that holds it, however that ends.
"""

import fcntl
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkb.generate.secrets import without_secrets
from pkb.whole import write_whole

SCHEMA = 1


@dataclass(frozen=True)
class Place:
    """Where one sample lies."""

    run: Path
    problem: str
    model: str
    number: int
    """From 1."""

    @property
    def name(self) -> str:
        return f"{slug(self.model)}-{self.number}"

    @property
    def folder(self) -> Path:
        return self.run / self.problem / self.name

    @property
    def candidate(self) -> Path:
        return self.folder / "candidate.py"

    @property
    def record(self) -> Path:
        return self.folder / "record.json"

    def facts(self) -> dict[str, Any] | None:
        """What sample.json says; None while there is none."""
        file = self.folder / "sample.json"
        return json.loads(file.read_text()) if file.is_file() else None

    def write(self, prompt: str, response: str, candidate: str | None, facts: dict[str, Any]) -> None:
        files = {"prompt.md": prompt, "response.md": response, "candidate.py": candidate}
        for name, text in files.items():
            if text is not None:
                write_whole(self.folder / name, without_secrets(text).encode(errors="backslashreplace"))
        written = {"schema": SCHEMA, "problem": self.problem, "number": self.number, **facts}
        write_whole(self.folder / "sample.json", without_secrets(json.dumps(written, indent=1)) + "\n")

    @contextmanager
    def claimed(self) -> Iterator[bool]:
        """Whether this process has the sample to itself, for as long as the context lasts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".claim").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def slug(model: str) -> str:
    """A model's name as part of a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
