"""A run: a folder of candidates and records, all by one model or person.

<run>/run.json                    whose they are: model, backend, when, ...; optional
<run>/<problem>/<sample>/         candidate.py, record.json (the latest), record-*.json (all), logs/;
                                  prompt.md and response.md when it was generated, turns/ when in several
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pkb.base.atomic import write_whole
from pkb.errors import UsageError
from pkb.record import Record, Verdict

RECORD = "record.json"
SOURCE = "candidate.py"
_FACTS = "run.json"
PROBLEM = re.compile(r"(?:L(\d+)_)?(\d+)_[\w-]+")
"""Matches a problem's stem; the names of KernelBench's tasks begin with a level."""
_LEVEL = 1000


@dataclass(frozen=True)
class Damage:
    """A file that cannot be read, and the reason."""

    path: Path
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass(frozen=True)
class Sample:
    """One candidate for one problem. Each property reads its file again."""

    problem: str
    """The problem's stem."""
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def number(self) -> int:
        """The problem's number."""
        return find_problem_number(self.problem)

    @property
    def record(self) -> Record | None:
        """The latest record; None when there is none or it is damaged."""
        found = read_record(self.folder / RECORD)
        return found if isinstance(found, Record) else None

    @property
    def history(self) -> list[Record]:
        """All records of the sample that can be read, oldest first."""
        found = [read_record(path) for path in self.folder.glob("record-*.json")] or [self.record]
        return sorted((record for record in found if isinstance(record, Record)), key=lambda record: record.when)

    @property
    def source(self) -> str | None:
        """The candidate's source; bytes that are not UTF-8 are escaped as surrogates."""
        return _read_text(self.folder / SOURCE)

    @property
    def prompt(self) -> Path | None:
        return _find_file(self.folder / "prompt.md")

    @property
    def response(self) -> Path | None:
        return _find_file(self.folder / "response.md")

    @property
    def turns(self) -> list[Path]:
        """The folders of the sample's turns, in order, where a model was asked more than once."""
        folders = [path for path in self.folder.glob("turns/*") if path.is_dir()]
        return sorted(folders, key=lambda path: _make_sort_key(path.name))


class Run:
    def __init__(self, folder: Path | str):
        self.folder = Path(folder)

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def facts(self) -> dict[str, Any]:
        """The content of run.json; empty where there is none, or where it is damaged."""
        found = self.read_facts()
        return {} if isinstance(found, Damage) else found

    def read_facts(self) -> dict[str, Any] | Damage:
        return _read_facts(self.folder / _FACTS)

    def update_facts(self, **facts: Any) -> None:
        """Add these facts to run.json."""
        write_whole(self.folder / _FACTS, json.dumps(self.facts | facts, indent=1) + "\n")

    def list_samples(self) -> list[Sample]:
        """Return all samples in order of problem and name. Raises UsageError where the run's folder is missing."""
        return [Sample(problem, Path(folder)) for problem, folder in self.list_folders()]

    def list_records(self) -> list[Record]:
        """Return the latest record of each sample that has one."""
        return [record for sample in self.list_samples() if (record := sample.record)]

    @property
    def damaged(self) -> list[Damage]:
        """The files that no reader can use."""
        paths = [sample.folder / RECORD for sample in self.list_samples()]
        found = [self.read_facts(), *map(read_record, paths)]
        return [one for one in found if isinstance(one, Damage)]

    def create_sample(self, problem: str, name: str | None = None) -> Path:
        """Create an empty folder that no other process uses; without a name, it gets the next free number."""
        home = self.folder / problem
        home.mkdir(parents=True, exist_ok=True)
        if name is not None:
            return _create_folder(home / name)
        number = sum(1 for _ in home.iterdir()) + 1
        while True:
            try:
                # Only one process can make a folder: that one owns it.
                (home / str(number)).mkdir()
                return home / str(number)
            except FileExistsError:
                number += 1

    def list_folders(self) -> Iterator[tuple[str, str]]:
        """Yield problem and path of each sample, as plain strings: a run may have a hundred thousand."""
        try:
            problems = [name for name in _list_folders(self.folder) if PROBLEM.fullmatch(name)]
        except OSError as error:
            raise UsageError(f"no run in {self.folder}: {error.strerror}; `pkb eval --out DIR` writes one") from error
        for problem in sorted(problems, key=_make_sort_key):
            home = os.path.join(self.folder, problem)
            for name in sorted(_list_folders(home), key=_make_sort_key):
                yield problem, os.path.join(home, name)


def save_record(folder: Path, record: Record, source: bytes | None = None) -> None:
    """Add a record, and its candidate, to a sample: under a name of its own, and as the latest."""
    if source is not None:
        _save_source(folder / SOURCE, source)
    content, latest = f"{record.to_json()}\n".encode(), folder / RECORD
    # First under names of their own: two judgements of one sample do not overwrite each other.
    for one in (latest.read_bytes(), content) if latest.is_file() else (content,):
        write_whole(folder / _choose_name(one), one)
    write_whole(latest, content)


def _choose_name(record: bytes) -> str:
    stamps = re.findall(rb'"when": ?"([-:T\d]*)', record) or [b"unknown"]
    return f"record-{re.sub('[-:]', '', stamps[-1].decode())}-{sha256(record).hexdigest()[:8]}.json"


def _save_source(path: Path, source: bytes) -> None:
    """Write the candidate; another candidate of the same name is renamed first."""
    if path.is_file() and (find_matching_record := path.read_bytes()) != source:
        write_whole(path.with_stem(f"candidate-{sha256(find_matching_record).hexdigest()[:8]}"), find_matching_record)
    write_whole(path, source)


def find_matching_record(folder: Path, digest: str, platform: str, setup: dict[str, Any], timed: bool) -> Record | None:
    """Return the latest record of a sample if it is about this candidate on this platform, has a time if that is
    wanted, and agrees with `setup`: fields of SetupFacts by name."""
    found = read_record(folder / RECORD)
    if not isinstance(found, Record) or found.verdict is Verdict.ENVIRONMENT:
        return None
    same = found.candidate.sha256 == digest and found.environment.platform == platform
    agrees = all(getattr(found.setup, name) == value for name, value in setup.items())
    lacks_time = timed and found.correct and not found.timing
    return found if same and agrees and not lacks_time else None


def read_record(path: Path) -> Record | Damage | None:
    """Return the record in a file; None where there is no file."""
    try:
        return Record.from_json(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        return Damage(path, describe_damage(error))


def describe_damage(error: Exception) -> str:
    """Return in words what is wrong with a file whose reading raised this error."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error}"
    return f"not a record: it has no {error}" if isinstance(error, KeyError) else str(error)


def find_problem_number(problem: str) -> int:
    """Return a number by which problems are ordered: all of one level before those of the next."""
    found = PROBLEM.fullmatch(problem)
    return _LEVEL * int(found[1] or 0) + int(found[2]) if found else 0


def _read_facts(path: Path) -> dict[str, Any] | Damage:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        return Damage(path, describe_damage(error))
    return found if isinstance(found, dict) else Damage(path, "not an object")


def _create_folder(folder: Path) -> Path:
    try:
        folder.mkdir()
    except FileExistsError:
        raise UsageError(f"{folder} exists already; choose another name") from None
    return folder


def _list_folders(folder: Path | str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]


def _make_sort_key(name: str) -> list[tuple[int, int | str]]:
    """Return a key that sorts sample_2 before sample_10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]


def _find_file(path: Path) -> Path | None:
    return path if path.is_file() else None


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return None
