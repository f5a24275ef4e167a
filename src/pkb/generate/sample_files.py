"""Samples on disk: `<run>/<problem>/<model>-<number>/` with prompt.md, response.md, candidate.py and sample.json.

A sample in several turns has these per turn, in `turns/<n>/`. sample.json is written last: where it is, the answer is
complete. A lock on `.claim` says who is at work on a sample; it ends with the process that holds it, however that ends.
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

from pkb.base.atomic import write_whole
from pkb.generate.redact import without_secrets
from pkb.record import Record, Verdict
from pkb.runs import RECORD, SOURCE, read_record

SCHEMA = 1
FACTS = "sample.json"


@dataclass(frozen=True)
class Turn:
    """One answer, and what became of it."""

    folder: Path
    number: int = 1
    """From 1."""

    @property
    def path(self) -> Path:
        """Of sample.json."""
        return self.folder / FACTS

    def facts(self) -> dict[str, Any] | None:
        """What sample.json says; None while there is none."""
        return json.loads(self.path.read_text()) if self.path.is_file() else None

    @property
    def source(self) -> bytes:
        """The candidate; empty where the answer held none."""
        file = self.folder / SOURCE
        return file.read_bytes() if file.is_file() else b""

    def record(self) -> Record | None:
        """None also where the machine failed: it is to be judged again."""
        found = read_record(self.folder / RECORD)
        return found if isinstance(found, Record) and found.verdict is not Verdict.ENVIRONMENT else None

    def write(self, prompt: str, response: str, candidate: str | None, facts: dict[str, Any]) -> None:
        files = {"prompt.md": prompt, "response.md": response, SOURCE: candidate}
        for name, text in files.items():
            if text is not None:
                write_whole(self.folder / name, without_secrets(text).encode(errors="backslashreplace"))
        write_whole(self.path, without_secrets(json.dumps({"schema": SCHEMA, **facts}, indent=1)) + "\n")


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
