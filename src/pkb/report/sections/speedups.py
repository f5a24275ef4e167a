"""The fastest right sample of each problem and run. The page draws these among the samples, where they are filtered."""

from pkb.analyse import Row, list_timed_rows
from pkb.display import CPU_TIMES, format_duration
from pkb.report.cells import (
    Column,
    Table,
    TableCell,
    drop_empty_columns,
    make_text_cell,
)
from pkb.report.data import ReportData, group_by_run
from pkb.report.section import Section

ORDER = 70
_NAMES = ("problem", "run", "sample", "speed-up", "pace", "reference", "candidate", "% of light", "clock")
_NUMBERS = ("speed-up", "reference", "candidate", "% of light")


def make_section(data: ReportData) -> Section:
    note = "The fastest right sample of each problem and run, with its 95 % interval over paired blocks."
    columns = [Column(name, name in _NUMBERS) for name in _NAMES]
    table = drop_empty_columns(Table(columns, [_make_cells(row) for row in find_fastest(data.rows)]))
    return Section("Speed-up per problem", note, table, on_page=False)


def find_fastest(rows: list[Row]) -> list[Row]:
    """Return the fastest right sample of each problem, run and kind of clock, in the problems' order."""
    fastest = {(row.run, row.problem, row.comparable): row for row in reversed(list_timed_rows(rows))}
    order = list(group_by_run(rows))
    return sorted(fastest.values(), key=lambda row: (not row.comparable, row.number, order.index(row.run)))


def _make_cells(row: Row) -> list[TableCell]:
    return [
        TableCell(row.problem, row.number, row),
        make_text_cell(row.run),
        make_text_cell(row.sample),
        TableCell(row.format_speedup(), row.speedup),
        make_text_cell(row.pace),
        TableCell(format_duration(row.reference_us), row.reference_us),
        TableCell(format_duration(row.candidate_us), row.candidate_us),
        TableCell("" if row.percent is None else f"{row.percent:.3g}", row.percent),
        make_text_cell(row.platform if row.comparable else CPU_TIMES),
    ]
