"""Export runs to one file and import them again: JSON lines, or Parquet with columns to query. No field is lost."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from pkb.analyse.rows import Row, make_row
from pkb.base.atomic import replace_whole
from pkb.errors import UsageError
from pkb.record import Record
from pkb.runs import PROBLEM, Damage, Run, describe_damage, save_record

FORMATS = (".jsonl", ".parquet")
_NAME = re.compile(r"[^./\\\0][^/\\\0]*")
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
    def from_json(cls, text: str) -> "Entry":
        """Return the entry in a line, which may also be a bare record, as `pkb eval --json` prints it.

        Raises ValueError when the line is neither.
        """
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("not an object")
        own = {key: content.pop(key, None) for key in ("run", "facts", "sample", "source")}
        record = Record.from_fields(content)
        run, sample = own["run"] or "run", own["sample"] or record.candidate.name
        # These names become folders.
        if not (PROBLEM.fullmatch(record.problem) and _NAME.fullmatch(sample) and _NAME.fullmatch(run)):
            raise ValueError(f"{run!r}, {record.problem!r} and {sample!r} cannot all name folders")
        return cls(run, own["facts"] or {}, sample, own["source"], record)


def export_runs(runs: Iterable[Run], path: Path) -> int:
    """Write the latest records of all samples to a file; return their number."""
    _check_format(path)
    entries = _list_entries(runs)
    with replace_whole(path) as partial:
        return _write_parquet(entries, partial) if path.suffix == ".parquet" else _write_lines(entries, partial)


def import_runs(path: Path, into: Path) -> tuple[int, list[Damage]]:
    """Add a file's samples to the run `into`, or where the file has several runs, to runs inside it.

    Returns the number of samples, and what could not be read.
    """
    names = {entry.run: entry.facts for entry in _read_entries(path) if isinstance(entry, Entry)}
    runs = {name: Run(into / name if len(names) > 1 else into) for name in names}
    for name, facts in names.items():
        if facts:
            runs[name].update_facts(**facts)
    count, damaged = 0, []
    for entry in _read_entries(path):
        if isinstance(entry, Damage):
            damaged.append(entry)
            continue
        folder = runs[entry.run].folder / entry.record.problem / entry.sample
        source = None if entry.source is None else entry.source.encode(errors="surrogateescape")
        save_record(folder, entry.record, source)
        count += 1
    return count, damaged


def _list_entries(runs: Iterable[Run]) -> Iterator[Entry]:
    for run in runs:
        name, facts = run.name, run.facts
        for sample in run.list_samples():
            if record := sample.record:
                yield Entry(name, facts, sample.name, sample.source, record)


def _write_lines(entries: Iterable[Entry], path: Path) -> int:
    count = 0
    with path.open("w") as file:
        for entry in entries:
            file.write(entry.to_json() + "\n")
            count += 1
    return count


def _write_parquet(entries: Iterator[Entry], path: Path) -> int:
    arrow, parquet = _import_pyarrow()
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    columns = {one.name: kinds[_find_plain_type(one.type)] for one in fields(Row) if one.name != "folder"}
    schema = arrow.schema(columns | {_ENTRY: arrow.string()})
    count = 0
    with parquet.ParquetWriter(path, schema) as file:
        while batch := [asdict(_make_row(entry)) | {_ENTRY: entry.to_json()} for entry in islice(entries, _BATCH)]:
            file.write_table(arrow.Table.from_pylist(batch, schema))
            count += len(batch)
    return count


def _make_row(entry: Entry) -> Row:
    model = str(entry.facts.get("model") or entry.run)
    return make_row(entry.run, model, entry.record.problem, entry.sample, entry.record.to_fields())


def _find_plain_type(kind: Any) -> Any:
    """Return float for `float | None`."""
    return next(iter(getattr(kind, "__args__", ())), kind)


def _read_entries(path: Path) -> Iterator[Entry | Damage]:
    _check_format(path)
    for number, text in enumerate(_read_parquet(path) if path.suffix == ".parquet" else _read_lines(path), start=1):
        try:
            yield Entry.from_json(text)
        except (ValueError, TypeError, KeyError) as error:
            yield Damage(path, f"entry {number}: {describe_damage(error)}")


def _read_lines(path: Path) -> Iterator[str]:
    try:
        with path.open() as file:
            yield from filter(str.strip, file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}; name a file that `pkb export` wrote") from error


def _read_parquet(path: Path) -> Iterator[str]:
    arrow, parquet = _import_pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH, columns=[_ENTRY]):
                yield from batch.column(0).to_pylist()
    except (OSError, arrow.ArrowException) as error:
        raise UsageError(f"cannot read {path}: {error}; name a file that `pkb export` wrote") from error


def _check_format(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise UsageError(f"{path} ends in neither of {', '.join(FORMATS)}; choose one of these endings")


def _import_pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow: pip install 'parallelkernelbench[parquet]', or use a .jsonl file"
        ) from error
    return pyarrow, pyarrow.parquet
