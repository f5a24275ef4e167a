"""Samples on disk: `<run>/<problem>/<model>-<number>/` with prompt.md, response.md, candidate.py and sample.json.

A sample in several turns has these files per turn, in `turns/<n>/`. sample.json is written last: where it exists, the
answer is complete. The process that works on a sample holds a lock on `.claim`, which ends with the process.
"""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pkb.base.atomic import write_whole
from pkb.base.foreign_files import (
    RECORD_BYTES,
    SOURCE_BYTES,
    describe_error,
    make_own_folder,
    parse_json,
    read_own_file,
)
from pkb.base.schema import parse
from pkb.errors import UsageError
from pkb.generate.redact import redact_secrets
from pkb.record import Record, Verdict
from pkb.runs import RECORD, SOURCE, RunFacts, read_record

SCHEMA = 1
FACTS = "sample.json"
_MOST_DOLLARS = 1e6
_ADVICE = "delete the sample's folder, or choose another --run"


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
        """Return the content of sample.json; None while the file does not exist. Raises UsageError if it is damaged."""
        return read_answer_facts(self.path)

    @property
    def source(self) -> bytes:
        """The candidate's source; empty where the answer held none."""
        try:
            return read_own_file(self.folder / SOURCE, SOURCE_BYTES)
        except FileNotFoundError:
            return b""
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.folder / SOURCE}: {describe_error(error)}; {_ADVICE}") from error

    def read_record(self) -> Record | None:
        """Return the turn's record; None where there is none, or where the machine failed and has to judge again."""
        found = read_record(self.folder / RECORD)
        return found if isinstance(found, Record) and found.verdict is not Verdict.ENVIRONMENT else None

    def write(self, prompt: str, response: str, candidate: str | None, facts: dict[str, Any]) -> None:
        make_own_folder(self.folder)
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
        make_own_folder(self.folder)
        # A link there could lead to any file of the user's.
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(self.folder / ".claim", flags, 0o644), "wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True


def read_answer_facts(path: Path) -> dict[str, Any] | None:
    """Return the content of a sample.json; None where there is no file. Raises UsageError if it is damaged."""
    try:
        found = parse_json(read_own_file(path, RECORD_BYTES))
        if not isinstance(found, dict):
            raise ValueError("not an object")
        facts: dict[str, Any] = {"candidate": None, "cost_usd": None} | parse(cast(Any, RunFacts), found, "it")
        _check_facts(facts)
        return facts
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {describe_error(error)}; {_ADVICE}") from error


def _check_facts(facts: dict[str, Any]) -> None:
    """Raise ValueError, which names the field, where a field that is read again has another type."""
    cost = facts["cost_usd"]
    if cost is not None and (type(cost) not in (int, float) or not 0 <= cost <= _MOST_DOLLARS):
        raise ValueError(f"cost_usd is no number from 0 to {_MOST_DOLLARS:g}")
    if not isinstance(facts["candidate"], str | None):
        raise ValueError("candidate is no text")
    if not isinstance(facts.get("asked", {}), dict):
        raise ValueError("asked is no object")
    notes = facts.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise ValueError("notes is no list of texts")


def make_slug(model: str) -> str:
    """Return a model's name as part of a path."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.")


def compute_digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
