"""A run: a folder of candidates and records, all by one model or person.

<run>/run.json                    whose they are: model, backend, when, ...; optional
<run>/<problem>/<sample>/         candidate.py, record.json (the latest), record-*.json (all), logs/;
                                  prompt.md and response.md when it was generated, turns/ when in several
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pkb.base.atomic import write_whole
from pkb.base.foreign_files import (
    RECORD_BYTES,
    SOURCE_BYTES,
    describe_error,
    make_own_folder,
    parse_json,
    read_own_file,
)
from pkb.base.printable import clean_line
from pkb.base.schema import PlainTree, parse
from pkb.display import write_table
from pkb.errors import UsageError
from pkb.frames import make_pandas, make_polars
from pkb.record import Record, Verdict
from pkb.row import NAME, PROBLEM, RECORD, Row, find_problem_number, read_row

if TYPE_CHECKING:
    import pandas
    import polars

SOURCE = "candidate.py"
_FACTS = "run.json"
_LINKED = "it is a symbolic link, which is not followed; copy the folder that it points to into the run"
MOST_TURNS = 1000
"""The highest number of a turn that is read."""
_MOST_PROBLEMS = 10_000
"""The most problems of a run: the memory of a bootstrap grows with them."""
_MOST_SHOWN = 50
"""The most samples that a notebook shows of a run."""
RunFacts = Annotated[dict[str, Any], PlainTree(depth=8, items=10_000, length=4000)]
"""The content of a run.json."""


@dataclass(frozen=True)
class Damage:
    """A file that cannot be read, and the reason."""

    path: Path
    what: str

    def __str__(self) -> str:
        return clean_line(f"{self.path}: {self.what}")


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
        home = self.folder / "turns"
        if home.is_symlink() or not home.is_dir():
            return []
        return [home / name for name in sorted(_scan(home)[0], key=_make_sort_key) if _is_turn(name)]


class Run:
    """A folder that `pkb eval --out` or `pkb generate` wrote, or will write."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"<{self._describe()}, in {clean_line(str(self.folder))}>"

    def _repr_html_(self) -> str:
        rows = self.list_rows() if self.folder.is_dir() else []
        hidden = len(rows) - _MOST_SHOWN
        title = self._describe() + (f"; the first {_MOST_SHOWN}, all: to_pandas()" if hidden > 0 else "")
        cells = [(row.problem, row.sample, row.verdict, row.format_speedup(), row.reason) for row in rows[:_MOST_SHOWN]]
        return write_table(title, ("problem", "sample", "verdict", "speed-up", "why"), cells)

    def _describe(self) -> str:
        folders = [*self.list_folders()] if self.folder.is_dir() else []
        return f"Run {clean_line(self.name, NAME)}: {len(folders)} samples of {len(dict(folders))} problems"

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a data frame with a line per sample: its latest record, in the columns of docs/runs.md."""
        return make_pandas(self.list_rows())

    def to_polars(self) -> "polars.DataFrame":
        """Return the same as a data frame of polars."""
        return make_polars(self.list_rows())

    def list_rows(self, damaged: list["Damage"] | None = None, name: str | None = None) -> list[Row]:
        """Return a row per sample that has a record, under another name of the run if one is given.

        What cannot be read is appended to `damaged`.
        """
        left_out: list[Damage] = [] if damaged is None else damaged
        shown, model = self.find_labels(left_out, name)
        rows: list[Row] = []
        problems: set[str] = set()
        for problem, folder in self.list_folders(left_out):
            problems.add(problem)
            if len(problems) > _MOST_PROBLEMS:
                raise UsageError(f"{self.folder} has more than {_MOST_PROBLEMS} problems; divide it into several runs")
            if row := read_row_or_damage(shown, model, problem, folder, left_out):
                rows.append(row)
        return rows

    def find_labels(self, damaged: list["Damage"], name: str | None = None) -> tuple[str, str]:
        """Return the names of the run and of its model, as tables show them."""
        facts = self.read_facts()
        if isinstance(facts, Damage):
            damaged.append(facts)
            facts = {}
        shown = clean_line(name or self.name, NAME)
        return shown, clean_line(str(facts.get("model") or shown), NAME)

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
        """Add these facts to run.json. Raises UsageError where run.json is damaged."""
        found = self.read_facts()
        if isinstance(found, Damage):
            raise UsageError(f"{found}; repair the file or delete it")
        write_whole(self.folder / _FACTS, json.dumps(found | facts, indent=1) + "\n")

    def list_samples(self) -> list[Sample]:
        """Return all samples in order of problem and name. Raises UsageError where the run's folder is missing."""
        return [Sample(problem, Path(folder)) for problem, folder in self.list_folders()]

    def list_records(self) -> list[Record]:
        """Return the latest record of each sample that has one."""
        return [record for sample in self.list_samples() if (record := sample.record)]

    @property
    def damaged(self) -> list[Damage]:
        """The files and folders that no reader can use."""
        folders: list[Damage] = []
        paths = [Path(folder) / RECORD for _, folder in self.list_folders(folders)]
        found = [self.read_facts(), *map(read_record, paths)]
        return folders + [one for one in found if isinstance(one, Damage)]

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

    def list_folders(self, damaged: list[Damage] | None = None) -> Iterator[tuple[str, str]]:
        """Yield problem and path of each sample, as plain strings: a run may have a hundred thousand.

        What is left out, because it is a link or cannot be read, is appended to `damaged`.
        """
        left_out = [] if damaged is None else damaged
        try:
            problems = self._list_own(self.folder, left_out, lambda name: PROBLEM.fullmatch(name) is not None)
        except OSError as error:
            raise UsageError(f"no run in {self.folder}: {error.strerror}; `pkb eval --out DIR` writes one") from error
        for problem in problems:
            home = self.folder / problem
            try:
                names = self._list_own(home, left_out, lambda _: True)
            except OSError as error:
                left_out.append(Damage(home, describe_error(error)))
                continue
            for name in names:
                yield problem, os.path.join(home, name)

    @staticmethod
    def _list_own(folder: Path, left_out: list[Damage], is_wanted: Callable[[str], bool]) -> list[str]:
        folders, links = _scan(folder)
        left_out += [Damage(folder / name, _LINKED) for name in links if is_wanted(name)]
        return sorted(filter(is_wanted, folders), key=_make_sort_key)


def save_record(folder: Path, record: Record, source: bytes | None = None) -> None:
    """Add a record, and its candidate, to a sample: under a name of its own, and as the latest."""
    make_own_folder(folder)
    if source is not None:
        _save_source(folder / SOURCE, source)
    content, latest = f"{record.to_json()}\n".encode(), folder / RECORD
    # First under names of their own: two judgements of one sample do not overwrite each other.
    for one in (_read_earlier(latest, RECORD_BYTES), content):
        if one is not None:
            write_whole(folder / _choose_name(one), one)
    write_whole(latest, content)


def _read_earlier(path: Path, most_bytes: int) -> bytes | None:
    """Return a file that is about to be replaced; None for what pkb has not written, and which is not kept."""
    try:
        return read_own_file(path, most_bytes)
    except (OSError, ValueError):
        return None


def _choose_name(record: bytes) -> str:
    stamps = re.findall(rb'"when": ?"([-:T\d]{0,40})', record) or [b"unknown"]
    return f"record-{re.sub('[-:]', '', stamps[-1].decode())}-{sha256(record).hexdigest()[:8]}.json"


def _save_source(path: Path, source: bytes) -> None:
    """Write the candidate; another candidate of the same name is renamed first."""
    earlier = _read_earlier(path, SOURCE_BYTES)
    if earlier is not None and earlier != source:
        write_whole(path.with_stem(f"candidate-{sha256(earlier).hexdigest()[:8]}"), earlier)
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
        return Record.from_fields(parse_json(read_own_file(path, RECORD_BYTES)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        return Damage(path, describe_damage(error))


def describe_damage(error: Exception) -> str:
    """Return in words what is wrong with a file whose reading raised this error."""
    return f"not a record: it has no {error}" if isinstance(error, KeyError) else describe_error(error)


def read_row_or_damage(run: str, model: str, problem: str, folder: str, damaged: list[Damage]) -> Row | None:
    """Return the row of a sample's folder; None without one. A record that cannot be read is appended to `damaged`."""
    try:
        return read_row(run, model, problem, folder)
    except (OSError, ValueError, RecursionError) as error:
        damaged.append(Damage(Path(folder, RECORD), describe_damage(error)))
        return None


def _read_facts(path: Path) -> dict[str, Any] | Damage:
    try:
        found = parse_json(read_own_file(path, RECORD_BYTES))
        return parse(RunFacts, found, "it") if isinstance(found, dict) else Damage(path, "not an object")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        return Damage(path, describe_damage(error))


def _create_folder(folder: Path) -> Path:
    try:
        folder.mkdir()
    except FileExistsError:
        raise UsageError(f"{folder} exists already; choose another name") from None
    return folder


def _scan(folder: Path | str) -> tuple[list[str], list[str]]:
    """Return the names of the folders in a folder, and of the links to folders."""
    with os.scandir(folder) as entries:
        found = [
            (entry.name, entry.is_symlink())
            for entry in entries
            if not entry.name.startswith(".") and _is_folder(entry)
        ]
    return [name for name, linked in found if not linked], [name for name, linked in found if linked]


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link to itself.
        return False


def _is_turn(name: str) -> bool:
    return not name.isdecimal() or int(name) <= MOST_TURNS


def _make_sort_key(name: str) -> list[tuple[int, int | str]]:
    """Return a key that sorts sample_2 before sample_10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]


def _find_file(path: Path) -> Path | None:
    return path if path.is_file() and not path.is_symlink() else None


def _read_text(path: Path) -> str | None:
    try:
        return read_own_file(path, SOURCE_BYTES).decode(errors="surrogateescape")
    except (OSError, ValueError):
        return None
