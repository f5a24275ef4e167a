"""Reports on runs: tables for people and programs, and a page to look into every sample."""

import csv
import io
import json
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pkb
from pkb.analyse import Row, read_rows
from pkb.base.atomic import write_whole
from pkb.base.printable import clean_line
from pkb.errors import UsageError
from pkb.record import Verdict
from pkb.report.data import ReportData, Turns
from pkb.report.markdown import write_markdown
from pkb.report.page import write_page
from pkb.report.sample_detail import make_finite
from pkb.report.section import Section
from pkb.report.sections import make_sections
from pkb.row import PUBLISHED
from pkb.runs import Damage

if TYPE_CHECKING:
    from pkb.problems.suite import Suite

FILES = {"md": "report.md", "csv": "report.csv", "json": "report.json", "html": "index.html"}
_TURNS = "turns.csv"
"""Written with report.csv, where samples have several turns."""
_MOST_DAMAGED = 10
_FORMULA_SIGNS = ("=", "+", "-", "@")


@dataclass(frozen=True)
class Report:
    """The latest record of each sample of some runs."""

    rows: list[Row]
    damaged: list[Damage]
    p: float
    when: datetime
    turns: Turns = field(default_factory=dict)

    @classmethod
    def of(cls, runs: list[Path], p: float = 1.0) -> "Report":
        """Return the report on these folders. Raises UsageError where there is nothing to report."""
        once = list({run.resolve(): run for run in runs}.values())
        found = read_rows(once)
        full = {Path(row.folder).parents[1] for row in found.rows}
        if empty := [str(run) for run in once if run not in full]:
            damaged = f" ({len(found.damaged)} cannot be read, the first: {found.damaged[0]})" if found.damaged else ""
            raise UsageError(f"no record in {', '.join(empty)}{damaged}; name folders that `pkb eval --out` wrote")
        return cls(found.rows, found.damaged, p, datetime.now(UTC), found.turns)

    @cached_property
    def data(self) -> ReportData:
        return ReportData(self.rows, self.p, self.turns)

    @cached_property
    def sections(self) -> dict[str, Section]:
        """All sections by name, in the order of reading."""
        return make_sections(self.data)

    @property
    def subtitle(self) -> str:
        problems = len({row.problem for row in self.rows})
        worlds = {f"{row.platform} at {row.world} ranks in {row.dtype}" for row in self.rows}
        places = ", ".join(sorted(worlds)) if len(worlds) <= 3 else f"{len(worlds)} settings"
        suites = len({row.suite for row in self.rows})
        split = f" of {suites} suites, which have tables of their own," if suites > 1 else ""
        counts = f"{len(self.rows)} samples of {problems} problems{split}"
        return f"{counts} in {', '.join(self.data.runs)}; judged on {places}."

    @property
    def origin(self) -> str:
        return f"Written by pkb {pkb.__version__} on {self.when:%Y-%m-%d %H:%M} UTC."

    @property
    def notices(self) -> list[str]:
        """What a reader must know before believing anything else."""
        found = []
        if any(row.speedup is not None and not row.comparable for row in self.rows):
            found.append(
                "Times on the platform cpu are the host's clock around interpreted kernels: they tell slow from equal "
                "on one machine, say nothing about GPUs, and do not enter the leaderboard."
            )
        if left_out := sum(row.verdict == Verdict.ENVIRONMENT for row in self.rows):
            found.append(f"{left_out} samples ended in ENVIRONMENT and are left out of all figures: judge them again.")
        if flawed := [row.problem for row in self.rows if row.degenerate]:
            names = ", ".join(dict.fromkeys(flawed))
            found.append(
                f"{len(flawed)} samples are of degenerate problems ({names}), whose results are the same for all "
                "inputs: they enter no figure."
            )
        if lenient := sum(row.inputs == PUBLISHED for row in self.rows):
            found.append(
                f"{lenient} samples were judged with published inputs, under which fewer mistakes show than under "
                "sound ones: they are runs of their own, below all others."
            )
        if self.damaged:
            named = "; ".join(map(str, self.damaged[:_MOST_DAMAGED]))
            found.append(f"{len(self.damaged)} files cannot be read and are left out: {named}")
        return found

    def write(self, folder: Path, formats: list[str], suite: "Suite") -> list[Path]:
        """Write the files of these formats, which are keys of FILES; return their paths."""
        head = [self.subtitle, *self.notices, self.origin]
        texts = {
            "md": lambda: write_markdown("Report", head, self.sections.values()),
            "csv": lambda: _write_csv(self.rows),
            "json": lambda: json.dumps(make_finite(self._make_figures()), indent=1, allow_nan=False) + "\n",
            "html": lambda: write_page(self, suite),
        }
        paths = [folder / FILES[name] for name in formats]
        for name, path in zip(formats, paths, strict=True):
            write_whole(path, texts[name]())
        if "csv" in formats and self.turns:
            paths.append(folder / _TURNS)
            turns = [row for rows in self.turns.values() for row in rows]
            write_whole(paths[-1], _write_csv(turns, ("turn",)))
        return paths

    def _make_figures(self) -> dict[str, Any]:
        figures = {name: section.figures for name, section in self.sections.items() if section.figures is not None}
        return {
            "subtitle": self.subtitle,
            "when": self.when.isoformat(timespec="seconds"),
            "pkb": pkb.__version__,
            "p": self.p,
            "notices": self.notices,
            **figures,
            "samples": [asdict(row) for row in self.rows],
        }


def _write_csv(rows: list[Row], more: tuple[str, ...] = ()) -> str:
    """Return a line per row; `more` are properties of rows that become further columns.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [*(field.name for field in fields(Row)), *more]
    writer.writerow(names)
    writer.writerows([_quote_formula(getattr(row, name)) for name in names] for row in rows)
    return text.getvalue()


def _quote_formula(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    shown = clean_line(value)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA_SIGNS) else shown
