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
"""A problem's stem; models have a level."""
_LEVEL = 1000


@dataclass(frozen=True)
class Damage:
    """A file that cannot be read, and why."""

    path: Path
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass(frozen=True)
class Sample:
    """One candidate for one problem. Files are read when asked for, and not kept."""

    problem: str
    """The problem's stem."""
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def number(self) -> int:
        """The problem's."""
        return number_of(self.problem)

    @property
    def record(self) -> Record | None:
        """The latest; None when there is none or it is damaged."""
        found = read_record(self.folder / RECORD)
        return found if isinstance(found, Record) else None

    @property
    def history(self) -> list[Record]:
        """All its records that can be read, oldest first."""
        found = [read_record(path) for path in self.folder.glob("record-*.json")] or [self.record]
        return sorted((record for record in found if isinstance(record, Record)), key=lambda record: record.when)

    @property
    def source(self) -> str | None:
        """The candidate; bytes that are not UTF-8 are escaped as surrogates."""
        return _text(self.folder / SOURCE)

    @property
    def prompt(self) -> Path | None:
        return _if_there(self.folder / "prompt.md")

    @property
    def response(self) -> Path | None:
        return _if_there(self.folder / "response.md")

    @property
    def turns(self) -> list[Path]:
        """The folders of its turns, in order, where a model was asked more than once."""
        return sorted((path for path in self.folder.glob("turns/*") if path.is_dir()), key=lambda p: _natural(p.name))


class Run:
    def __init__(self, folder: Path | str):
        self.folder = Path(folder)

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def facts(self) -> dict[str, Any]:
        """What run.json says; empty without one, or where it is damaged."""
        found = self.read_facts()
        return {} if isinstance(found, Damage) else found

    def read_facts(self) -> dict[str, Any] | Damage:
        return _read_facts(self.folder / _FACTS)

    def describe(self, **facts: Any) -> None:
        """Write run.json: what it said before, and these."""
        write_whole(self.folder / _FACTS, json.dumps(self.facts | facts, indent=1) + "\n")

    def samples(self) -> list[Sample]:
        """In order of problem and name. Raises UsageError where there is no such folder."""
        return [Sample(problem, Path(folder)) for problem, folder in self.folders()]

    def records(self) -> list[Record]:
        """The latest of each sample that has one."""
        return [record for sample in self.samples() if (record := sample.record)]

    @property
    def damaged(self) -> list[Damage]:
        """Files that every reader skips."""
        paths = [sample.folder / RECORD for sample in self.samples()]
        found = [self.read_facts(), *map(read_record, paths)]
        return [one for one in found if isinstance(one, Damage)]

    def new_sample(self, problem: str, name: str | None = None) -> Path:
        """An empty folder that no other process has been given; without a name, the next free number."""
        home = self.folder / problem
        home.mkdir(parents=True, exist_ok=True)
        if name is not None:
            return _claimed(home / name)
        number = sum(1 for _ in home.iterdir()) + 1
        while True:
            try:
                # Whoever makes the folder owns it.
                (home / str(number)).mkdir()
                return home / str(number)
            except FileExistsError:
                number += 1

    def folders(self) -> Iterator[tuple[str, str]]:
        """Problem and path of each sample: as frugal as a hundred thousand of them ask for."""
        try:
            problems = [name for name in _folders_in(self.folder) if PROBLEM.fullmatch(name)]
        except OSError as error:
            raise UsageError(f"no run in {self.folder}: {error.strerror}; `pkb eval --out DIR` writes one") from error
        for problem in sorted(problems, key=_natural):
            home = os.path.join(self.folder, problem)
            for name in sorted(_folders_in(home), key=_natural):
                yield problem, os.path.join(home, name)


def keep(folder: Path, record: Record, source: bytes | None = None) -> None:
    """Add a record to a sample, and the candidate that it is about: beside all earlier ones, and as the latest."""
    if source is not None:
        _keep_source(folder / SOURCE, source)
    content, latest = f"{record.to_json()}\n".encode(), folder / RECORD
    # First under names of their own: of two judgements of one sample neither overwrites the other's.
    for one in (latest.read_bytes(), content) if latest.is_file() else (content,):
        write_whole(folder / _name_of(one), one)
    write_whole(latest, content)


def _name_of(record: bytes) -> str:
    stamps = re.findall(rb'"when": ?"([-:T\d]*)', record) or [b"unknown"]
    return f"record-{re.sub('[-:]', '', stamps[-1].decode())}-{sha256(record).hexdigest()[:8]}.json"


def _keep_source(path: Path, source: bytes) -> None:
    """Another candidate that had the same name makes room."""
    if path.is_file() and (earlier := path.read_bytes()) != source:
        write_whole(path.with_stem(f"candidate-{sha256(earlier).hexdigest()[:8]}"), earlier)
    write_whole(path, source)


def earlier(folder: Path, digest: str, platform: str, setup: dict[str, Any], timed: bool) -> Record | None:
    """The latest record of a sample, if it answers what is asked: this candidate, so set up, and its time."""
    found = read_record(folder / RECORD)
    if not isinstance(found, Record) or found.verdict is Verdict.ENVIRONMENT:
        return None
    same = found.candidate.get("sha256") == digest and found.environment.get("platform") == platform
    lacks_time = timed and found.correct and not found.timing
    return found if same and setup.items() <= found.setup.items() and not lacks_time else None


def read_record(path: Path) -> Record | Damage | None:
    """None when there is none."""
    try:
        return Record.from_json(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        return Damage(path, damage(error))


def damage(error: Exception) -> str:
    """What is wrong with a file, in words."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error}"
    return f"not a record: it has no {error}" if isinstance(error, KeyError) else str(error)


def number_of(problem: str) -> int:
    """In the order of problems: those of a level after all of the level before."""
    found = PROBLEM.fullmatch(problem)
    return _LEVEL * int(found[1] or 0) + int(found[2]) if found else 0


def _read_facts(path: Path) -> dict[str, Any] | Damage:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        return Damage(path, damage(error))
    return found if isinstance(found, dict) else Damage(path, "not an object")


def _claimed(folder: Path) -> Path:
    try:
        folder.mkdir()
    except FileExistsError:
        raise UsageError(f"{folder} is there already; choose another name") from None
    return folder


def _folders_in(folder: Path | str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Sorts sample_2 before sample_10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]


def _if_there(path: Path) -> Path | None:
    return path if path.is_file() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return None
