"""The share of right samples by category and run."""

from collections.abc import Callable

from pkb.analyse import ALL, Estimate, Summary
from pkb.report.cells import Column, Table, make_share_estimate_cell, make_text_cell
from pkb.report.data import INTERVALS, ReportData
from pkb.report.section import Section

ORDER = 30


def make_section(data: ReportData) -> Section:
    note = f"pass@1: the share of samples that are right, averaged over problems; {INTERVALS}."
    return Section("Right, by category", note, make_category_table(data, lambda summary: summary.pass_at[1]))


def make_category_table(data: ReportData, find_figure: Callable[[Summary], Estimate | None]) -> Table:
    """Return a heat map of one figure, with a line per category, a column per run, and a line over all categories."""
    found = {(one.summary.category, one.run): find_figure(one.summary) for one in data.standings}
    columns = [Column("category"), *(Column(data.coverage.label(run), True) for run in data.runs)]
    rows = [
        [make_text_cell(name), *(make_share_estimate_cell(found.get((name, run))) for run in data.runs)]
        for name in [*data.categories, ALL]
    ]
    return Table(columns, rows, heat=True, total=True)
