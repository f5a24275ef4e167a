"""Export runs to one file and import them again: JSON lines, or Parquet with columns to query. No field is lost."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from pkb.base.atomic import replace_whole
from pkb.base.foreign_files import SOURCE_BYTES, describe_error, open_named_file, parse_json
from pkb.base.printable import clean_line
from pkb.base.schema import parse
from pkb.errors import UsageError
from pkb.record import Record
from pkb.row import Row, find_column_types, make_row
from pkb.runs import PROBLEM, Damage, Run, RunFacts, describe_damage, save_record

FORMATS = (".jsonl", ".parquet")
_NAME = re.compile(r"[^./\\\0][^/\\\0]*")
_NAME_BYTES = 200
"""The most bytes of a name that becomes a folder."""
_ENTRY_BYTES = 64 << 20
_ROW_GROUP_BYTES = 1 << 30
_MOST_RUNS = 1000
_MOST_DAMAGED = 1000
"""The most entries that an import skips."""
_BATCH = 1000
_ENTRY = "entry"
"""The column of a Parquet file that holds a whole JSON line; the other columns are there to be queried."""


@dataclass(frozen=True)
class Entry:
    """One sample: its latest record, and what an import needs to write it to a run."""

    run: str
    facts: dict[str, Any]
    """The content of the run's run.json."""
    sample: str
    source: str | None
    record: Record

    def to_json(self) -> str:
        own = {"run": self.run, "facts": self.facts, "sample": self.sample, "source": self.source}
        return json.dumps(own | self.record.to_fields())

    @classmethod
    def from_json(cls, text: str | bytes) -> "Entry":
        """Return the entry in a line, which may also be a bare record, as `pkb eval --json` prints it.

        Raises ValueError when the line is neither.
        """
        content = parse_json(text)
        if not isinstance(content, dict):
            raise ValueError("not an object")
        own = parse(_Origin, {one.name: content.pop(one.name, None) for one in fields(_Origin)})
        record = Record.from_fields(content)
        run, sample = own.run or "run", own.sample or record.candidate.name
        for field, name in (("run", run), ("problem", record.problem), ("sample", sample)):
            _check_name(field, name)
        if not PROBLEM.fullmatch(record.problem):
            raise ValueError(f"problem is {clean_line(record.problem, 80)!r}, which is not <number>_<name>")
        if own.source is not None and len(own.source) > SOURCE_BYTES:
            raise ValueError(f"source has more than {SOURCE_BYTES} characters")
        return cls(run, own.facts or {}, sample, own.source, record)


@dataclass(frozen=True)
class _Origin:
    """What an entry has apart from its record."""

    run: str | None
    facts: RunFacts | None
    sample: str | None
    source: str | None


def _check_name(field: str, name: str) -> None:
    """Raise ValueError for a name that cannot be that of a folder in a run."""
    plain = _NAME.fullmatch(name) and name.isprintable()
    if not plain or len(os.fsencode(name)) > _NAME_BYTES:
        raise ValueError(f"{field} is {clean_line(name, 80)!r}, which cannot name a folder")


def export_runs(runs: Iterable[Run], path: Path) -> int:
    """Write the latest records of all samples to a file; return their number."""
    _check_format(path)
    entries = _list_entries(runs)
    with replace_whole(path) as partial:
        return _write_parquet(entries, partial) if path.suffix == ".parquet" else _write_lines(entries, partial)


def import_runs(path: Path, into: Path, skip_damaged: bool = False) -> tuple[int, list[Damage]]:
    """Add a file's samples to the run `into`, or where the file has several runs, to runs inside it.

    Returns the number of samples, and what could not be read. Raises UsageError, before anything is written, where
    something cannot be read and `skip_damaged` is not set, or where nothing can be read.
    """
    facts, good, damaged = _survey(path, _MOST_DAMAGED if skip_damaged else 0)
    if not good:
        raise UsageError(f"{damaged[0] if damaged else f'{path} has no entry'}; name a file that `pkb export` wrote")
    runs = {name: Run(into / name if len(facts) > 1 else into) for name in facts}
    for name, run in runs.items():
        if run.folder != into and run.folder.is_symlink():
            raise UsageError(f"{run.folder} is a symbolic link, through which nothing is written; choose another --run")
        if facts[name]:
            run.update_facts(**facts[name])
    for entry in _read_entries(path):
        if isinstance(entry, Entry):
            folder = runs[entry.run].folder / entry.record.problem / entry.sample
            source = None if entry.source is None else _encode(entry.source)
            save_record(folder, entry.record, source)
    return good, damaged


def _survey(path: Path, most_damaged: int) -> tuple[dict[str, dict[str, Any]], int, list[Damage]]:
    """Return the facts of the runs in a file, the number of entries that can be read, and the others.

    Raises UsageError where the others are more than `most_damaged`.
    """
    facts: dict[str, dict[str, Any]] = {}
    good, damaged = 0, []
    for entry in _read_entries(path):
        if isinstance(entry, Damage):
            damaged.append(entry)
            if len(damaged) > most_damaged:
                raise UsageError(f"{entry}; repair or remove the entry, or import the others with --skip-damaged")
            continue
        facts[entry.run], good = entry.facts, good + 1
        if len(facts) > _MOST_RUNS:
            raise UsageError(f"{path} has more than {_MOST_RUNS} runs; import it in parts")
    return facts, good, damaged


def _encode(source: str) -> bytes:
    """Return a source as it was read: bytes that were no UTF-8 are escaped as surrogates."""
    try:
        return source.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return source.encode(errors="backslashreplace")


def _list_entries(runs: Iterable[Run]) -> Iterator[Entry]:
    for run in runs:
        name, facts = run.name, run.facts
        for sample in run.list_samples():
            if record := sample.record:
                yield Entry(name, facts, sample.name, sample.source, record)


def _write_lines(entries: Iterable[Entry], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for entry in entries:
            file.write(entry.to_json() + "\n")
            count += 1
    return count


def _write_parquet(entries: Iterator[Entry], path: Path) -> int:
    arrow, parquet = _import_pyarrow()
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    columns = {name: kinds[kind] for name, kind in find_column_types().items() if name != "folder"}
    schema = arrow.schema(columns | {_ENTRY: arrow.string()})
    count = 0
    with parquet.ParquetWriter(path, schema) as file:
        while batch := [asdict(_make_row(entry)) | {_ENTRY: entry.to_json()} for entry in islice(entries, _BATCH)]:
            file.write_table(arrow.Table.from_pylist(batch, schema))
            count += len(batch)
    return count


def _make_row(entry: Entry) -> Row:
    run = clean_line(entry.run)
    model = clean_line(str(entry.facts.get("model") or run))
    return make_row(run, model, clean_line(entry.record.problem), entry.sample, entry.record.to_fields())


def _read_entries(path: Path) -> Iterator[Entry | Damage]:
    _check_format(path)
    entries: Iterator[str | bytes] = _read_parquet(path) if path.suffix == ".parquet" else _read_lines(path)
    for number, text in enumerate(entries, start=1):
        try:
            yield Entry.from_json(text)
        except (ValueError, RecursionError) as error:
            yield Damage(path, f"entry {number}: {describe_damage(error)}")


def _read_lines(path: Path) -> Iterator[str | bytes]:
    try:
        with open_named_file(path) as file:
            while line := file.readline(_ENTRY_BYTES + 1):
                if len(line) > _ENTRY_BYTES:
                    raise ValueError(f"a line has more than {_ENTRY_BYTES >> 20} MiB")
                if line.strip():
                    yield line
    except (OSError, ValueError) as error:
        raise _refuse(path, error) from error


def _read_parquet(path: Path) -> Iterator[str | bytes]:
    arrow, parquet = _import_pyarrow()
    try:
        with open_named_file(path) as plain, parquet.ParquetFile(plain) as file:
            _check_table(file)
            for batch in file.iter_batches(_BATCH, columns=[_ENTRY]):
                yield from (text or "" for text in batch.column(0).to_pylist())
    except (OSError, ValueError, arrow.ArrowException) as error:
        raise _refuse(path, error) from error


def _check_table(file: Any) -> None:
    """Raise ValueError for a table without a column of entries, or one that would need very much memory."""
    if _ENTRY not in file.schema_arrow.names or str(file.schema_arrow.field(_ENTRY).type) != "string":
        raise ValueError(f"it has no column {_ENTRY!r} of texts")
    groups = range(file.metadata.num_row_groups)
    if any(file.metadata.row_group(at).total_byte_size > _ROW_GROUP_BYTES for at in groups):
        raise ValueError(f"one of its row groups has more than {_ROW_GROUP_BYTES >> 30} GiB")


def _refuse(path: Path, error: Exception) -> UsageError:
    return UsageError(f"cannot read {path}: {describe_error(error)}; name a file that `pkb export` wrote")


def _check_format(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise UsageError(f"{path} ends in neither of {', '.join(FORMATS)}; choose one of these endings")


def _import_pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError("Parquet needs pyarrow: pip install -e '.[parquet]', or use a .jsonl file") from error
    return pyarrow, pyarrow.parquet
