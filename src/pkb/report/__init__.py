"""Runs, reported: tables for people and programs, and a page to look into every sample."""

import csv
import io
import json
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pkb
from pkb.analyse import Row, compare_runs, compute_fast_p_curve, count_failures, make_leaderboard, read_rows
from pkb.analyse.rows import PUBLISHED
from pkb.base.atomic import write_whole
from pkb.errors import UsageError
from pkb.record import Verdict
from pkb.report.cells import Table
from pkb.report.markdown import markdown
from pkb.report.page import html
from pkb.report.sample_detail import finite
from pkb.report.tables import PS, Turns, by_run, lines, tables, turn_lines
from pkb.runs import Damage

if TYPE_CHECKING:
    from pkb.problems.suite import Suite

FILES = {"md": "report.md", "csv": "report.csv", "json": "report.json", "html": "index.html"}
_TURNS = "turns.csv"
"""Written beside report.csv, where there are samples in several turns."""
_MOST_DAMAGED = 10


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
        """Raises UsageError where there is nothing to report."""
        once = list({run.resolve(): run for run in runs}.values())
        found = read_rows(once)
        full = {Path(row.folder).parents[1] for row in found.rows}
        if empty := [str(run) for run in once if run not in full]:
            damaged = f" ({len(found.damaged)} cannot be read, such as {found.damaged[0]})" if found.damaged else ""
            raise UsageError(f"no record in {', '.join(empty)}{damaged}; name folders that `pkb eval --out` wrote")
        return cls(found.rows, found.damaged, p, datetime.now(UTC), found.turns)

    @property
    def subtitle(self) -> str:
        problems, runs = len({row.problem for row in self.rows}), list(by_run(self.rows))
        worlds = {f"{row.platform} at {row.world} ranks in {row.dtype}" for row in self.rows}
        places = ", ".join(sorted(worlds)) if len(worlds) <= 3 else f"{len(worlds)} settings"
        names = ", ".join(runs)
        return f"{len(self.rows)} samples of {problems} problems in {names}; judged on {places}."

    @property
    def made(self) -> str:
        return f"Made by pkb {pkb.__version__} on {self.when:%Y-%m-%d %H:%M} UTC."

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
            found.append(f"{left_out} samples ended in ENVIRONMENT, which counts for nobody: judge them again.")
        if flawed := [row.problem for row in self.rows if row.degenerate]:
            names = ", ".join(dict.fromkeys(flawed))
            found.append(
                f"{len(flawed)} samples are of degenerate problems ({names}), whose results are the same whatever the "
                "inputs: they enter no figure."
            )
        if lenient := sum(row.inputs == PUBLISHED for row in self.rows):
            found.append(
                f"{lenient} samples were judged with published inputs, under which less shows than under sound ones: "
                "they stand in runs of their own, below all others."
            )
        if self.damaged:
            named = "; ".join(map(str, self.damaged[:_MOST_DAMAGED]))
            found.append(f"{len(self.damaged)} files cannot be read and are left out: {named}")
        return found

    @cached_property
    def tables(self) -> list[Table]:
        return tables(self.rows, self.p, self.turns)

    def write(self, folder: Path, formats: list[str], suite: "Suite") -> list[Path]:
        """The files of these formats, of FILES."""
        texts = {
            "md": lambda: markdown("Report", [self.subtitle, *self.notices, self.made], self.tables),
            "csv": lambda: _csv(self.rows),
            "json": lambda: json.dumps(finite(self._figures()), indent=1, allow_nan=False) + "\n",
            "html": lambda: html(self, suite),
        }
        paths = [folder / FILES[name] for name in formats]
        for name, path in zip(formats, paths, strict=True):
            write_whole(path, texts[name]())
        if "csv" in formats and self.turns:
            paths.append(folder / _TURNS)
            turns = [row for rows in self.turns.values() for row in rows]
            write_whole(paths[-1], _csv(turns, ("turn",)))
        return paths

    def _figures(self) -> dict[str, Any]:
        runs = by_run(self.rows)
        curves = [
            {
                "run": line.run,
                "cpu_times": line.cpu,
                "fast_p": dict(zip(PS, compute_fast_p_curve(line.rows, PS), strict=True)),
            }
            for line in lines(self.rows)
        ]
        return {
            "subtitle": self.subtitle,
            "when": self.when.isoformat(timespec="seconds"),
            "pkb": pkb.__version__,
            "p": self.p,
            "notices": self.notices,
            "leaderboard": [asdict(standing) for standing in make_leaderboard(self.rows, p=self.p)],
            "fast_p": curves,
            "turns": [asdict(line) for line in turn_lines(self.turns, self.p)],
            "failures": {run: [asdict(one) for one in count_failures(found)] for run, found in runs.items()},
            "comparison": [asdict(one) for one in compare_runs(*runs.values())] if len(runs) == 2 else [],
            "samples": [asdict(row) for row in self.rows],
        }


def _csv(rows: list[Row], more: tuple[str, ...] = ()) -> str:
    """A line per row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [*(field.name for field in fields(Row)), *more]
    writer.writerow(names)
    writer.writerows([getattr(row, name) for name in names] for row in rows)
    return text.getvalue()
