"""The share of fast samples by category and run."""

from pkb.report.data import INTERVALS, ReportData
from pkb.report.section import Section
from pkb.report.sections.categories import make_category_table

ORDER = 40


def make_section(data: ReportData) -> Section:
    p, table = data.p, make_category_table(data, lambda summary: summary.fast_at[1])
    note = f"fast_{p:g}@1: right, and surely over {p:g} times the reference's speed; {INTERVALS}. Without CPU times."
    has_times = any(cell.value is not None for row in table.rows for cell in row[1:])
    return Section("Fast, by category", note, table if has_times else None)
