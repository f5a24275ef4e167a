"""What changed from one run to the other, problem by problem, where a report has two runs."""

from dataclasses import asdict

from pkb.analyse import Comparison, Row, compare_runs
from pkb.analyse.estimates import estimate_geometric_mean
from pkb.display import format_ratio
from pkb.report.cells import (
    Column,
    Table,
    TableCell,
    make_ratio_estimate_cell,
    make_text_cell,
)
from pkb.report.data import ReportData
from pkb.report.section import Section

ORDER = 20


def make_section(data: ReportData) -> Section:
    if len(data.runs) != 2:
        return Section("Comparison", figures=[])
    (before, rows_a), (after, rows_b) = data.runs.items()
    found = compare_runs(rows_a, rows_b)
    note = (
        f"From {before} to {after}: {_count_changes(found)}.{_describe_mean(found)} Compared are the best samples that "
        "each run has of a problem; the ratio is of the speed-ups. noise: both right, and the intervals overlap or the "
        "ratio is within 2 % of 1. same: neither is right, or their times, on CPUs or under other settings, cannot be "
        "compared."
    )
    columns = [Column("problem"), Column("change"), Column("ratio", True), Column(before), Column(after)]
    table = Table([*columns, Column("other settings")], [_make_cells(one) for one in found])
    return Section(f"{before} against {after}", note, table, figures=[asdict(one) for one in found])


def _make_cells(one: Comparison) -> list[TableCell]:
    return [
        TableCell(one.problem, one.number),
        make_text_cell(one.change),
        TableCell("" if one.ratio is None else format_ratio(one.ratio), one.ratio),
        _make_outcome_cell(one.before),
        _make_outcome_cell(one.after),
        make_text_cell(", ".join(one.other_settings)),
    ]


def _make_outcome_cell(row: Row | None) -> TableCell:
    if row is None:
        return TableCell("")
    return TableCell(f"{row.verdict} {row.format_speedup()}".strip(), row.verdict, row)


def _count_changes(found: list[Comparison]) -> str:
    words = [one.change for one in found]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words)))


def _describe_mean(found: list[Comparison]) -> str:
    change = estimate_geometric_mean({one.problem: [one.ratio] for one in found if one.ratio})
    if change is None or change.problems < 2:
        return ""
    mean = make_ratio_estimate_cell(change).text
    return f" The mean ratio over {change.problems} problems timed in both runs is {mean}."
