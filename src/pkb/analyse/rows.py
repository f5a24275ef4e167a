"""The rows of several runs, and of the turns of their samples."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pkb.base.printable import clean_line
from pkb.frames import make_pandas, make_polars
from pkb.row import NAME, Row
from pkb.runs import Damage, Run, Sample, read_row_or_damage

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass
class Rows:
    rows: list[Row] = field(default_factory=list)
    turns: dict[str, list[Row]] = field(default_factory=dict)
    """By the folder of a sample in several turns: a row for each turn that has a record, in order."""
    damaged: list[Damage] = field(default_factory=list)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a data frame with a line per sample, in the columns of docs/runs.md."""
        return make_pandas(self.rows)

    def to_polars(self) -> "polars.DataFrame":
        """Return the same as a data frame of polars."""
        return make_polars(self.rows)


def read_rows(paths: Iterable[Path | str]) -> Rows:
    """Return the samples of these runs that have a record, and the files that cannot be read."""
    found = Rows()
    runs = [Run(path) for path in paths]
    names = [run.name for run in runs]
    for run, name in zip(runs, names, strict=True):
        _read_run(run, name if names.count(name) == 1 else str(run.folder), found)
    return found


def _read_run(run: Run, name: str, found: Rows) -> None:
    found.rows += run.list_rows(found.damaged, name)
    name, model = run.find_labels([], name)
    for problem, folder in run.list_folders():
        if os.path.isdir(os.path.join(folder, "turns")):
            turns = [str(turn) for turn in Sample(problem, Path(folder)).turns if turn.name.isdecimal()]
            rows = [row for turn in turns if (row := read_row_or_damage(name, model, problem, turn, found.damaged))]
            found.turns[folder] = [replace(row, sample=clean_line(os.path.basename(folder), NAME)) for row in rows]
