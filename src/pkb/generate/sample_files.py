"""Samples on disk: `<run>/<problem>/<model>-<number>/` with prompt.md, response.md, candidate.py and sample.json.

A sample in several turns has these files per turn, in `turns/<n>/`. sample.json is written last: where it exists, the
answer is complete. The process that works on a sample holds a lock on `.claim`, which ends with the process.
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
from pkb.generate.redact import redact_secrets
from pkb.record import Record, Verdict
from pkb.runs import RECORD, SOURCE, read_record

SCHEMA = 1
FACTS = "sample.json"


@dataclass(frozen=True)
class Turn:
    """One answer and its verdict, in a folder."""

    folder: Path
    number: int = 1
    """The turn's number, from 1."""

    @property
    def path(self) -> Path:
        """The path of sample.json."""
        return self.folder / FACTS

    def read_facts(self) -> dict[str, Any] | None:
        """Return the content of sample.json; None while the file does not exist."""
        return json.loads(self.path.read_text()) if self.path.is_file() else None

    @property
    def source(self) -> bytes:
        """The candidate's source; empty where the answer held none."""
        file = self.folder / SOURCE
        return file.read_bytes() if file.is_file() else b""

    def read_record(self) -> Record | None:
        """Return the turn's record; None where there is none, or where the machine failed and has to judge again."""
        found = read_record(self.folder / RECORD)
        return found if isinstance(found, Record) and found.verdict is not Verdict.ENVIRONMENT else None

    def write(self, prompt: str, response: str, candidate: str | None, facts: dict[str, Any]) -> None:
        files = {"prompt.md": prompt, "response.md": response, SOURCE: candidate}
        for name, text in files.items():
            if text is not None:
                write_whole(self.folder / name, redact_secrets(text).encode(errors="backslashreplace"))
        write_whole(self.path, redact_secrets(json.dumps({"schema": SCHEMA, **facts}, indent=1)) + "\n")


@dataclass(frozen=True)
class Place:
    """The folder of one sample."""

    run: Path
    problem: str
    model: str
    number: int
    """The sample's number, from 1."""

    @property
    def name(self) -> str:
        return f"{make_slug(self.model)}-{self.number}"

    @property
    def folder(self) -> Path:
        return self.run / self.problem / self.name

    @contextmanager
    def claim(self) -> Iterator[bool]:
        """Lock the sample while the context lasts; yield whether the lock was free."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".claim").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def make_slug(model: str) -> str:
    """Return a model's name as part of a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.")


def compute_digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
