"""Which verdicts the samples got, and which checks failed."""

from collections import Counter
from dataclasses import asdict

from pkb.analyse import FailureCount, Row, count_failures
from pkb.record import Verdict
from pkb.report.cells import Column, Table, TableCell, make_count_cell, make_share_cell, make_text_cell
from pkb.report.data import ReportData
from pkb.report.section import BarChart, Section, StackedBar

ORDER = 80
_NOTE = (
    "Shares are of the samples that count. ENVIRONMENT is the machine's fault or the judge's, and is left out of all "
    "other figures."
)


def make_section(data: ReportData) -> Section:
    found = {run: count_failures(rows) for run, rows in data.runs.items()}
    columns = [Column("run"), Column("verdict"), Column("samples", True), Column("share", True), Column("by check")]
    cells = [_make_cells(run, one) for run, failures in found.items() for one in failures]
    bars = [_make_bar(run, rows) for run, rows in data.runs.items()]
    figures = {run: [asdict(one) for one in failures] for run, failures in found.items()}
    return Section("Failures", _NOTE, Table(columns, cells), BarChart(bars), figures)


def _make_cells(run: str, one: FailureCount) -> list[TableCell]:
    checks = ", ".join(f"{check} {count}" for check, count in one.checks.items() if check)
    return [
        make_text_cell(run),
        make_text_cell(one.verdict),
        make_count_cell(one.count),
        make_share_cell(one.share),
        make_text_cell(checks),
    ]


def _make_bar(run: str, rows: list[Row]) -> StackedBar:
    counts = Counter(row.verdict for row in rows if not row.degenerate)
    ordered = sorted(counts.items(), key=lambda item: (item[0] != Verdict.CORRECT, -item[1]))
    return StackedBar(f"{run}: {counts.total()} samples", dict(ordered))
