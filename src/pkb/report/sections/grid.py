"""Every problem against every run, where a report has several: how many samples are right, and the best speed-up."""

from pkb.analyse import Row
from pkb.display import CPU_TIMES, format_ratio
from pkb.report.cells import Column, Table, TableCell
from pkb.report.data import ReportData
from pkb.report.section import Section

ORDER = 25
_NOTE = (
    "Of each problem and run: how many samples are right, of how many, and the speed-up of the fastest right one, to "
    "which the cell leads. Samples of verdict ENVIRONMENT are not counted. A cell is empty where a run has no sample."
)


def make_section(data: ReportData) -> Section:
    if len(data.runs) < 2:
        return Section("Problems by run")
    found: dict[tuple[str, str], list[Row]] = {}
    for row in data.rows:
        if row.counts:
            found.setdefault((row.problem, row.run), []).append(row)
    numbers = {row.problem: row.number for row in data.rows}
    rows = [
        [TableCell(problem, numbers[problem]), *(_make_cell(found.get((problem, run), [])) for run in data.runs)]
        for problem in sorted(numbers, key=lambda problem: (numbers[problem], problem))
    ]
    columns = [Column("problem"), *(Column(run, True) for run in data.runs)]
    return Section("Problems by run", _NOTE, Table(columns, rows, heat=True))


def _make_cell(rows: list[Row]) -> TableCell:
    if not rows:
        return TableCell("")
    right = sum(row.correct for row in rows)
    # Times that may be compared come before CPU times, which say nothing beside them.
    best = max(rows, key=lambda row: (row.correct, row.comparable, row.speedup or 0.0))
    clock = "" if best.comparable else f", {CPU_TIMES}"
    speed = f" {format_ratio(best.speedup)}{clock}" if best.correct and best.speedup is not None else ""
    return TableCell(f"{right}/{len(rows)}{speed}", right / len(rows), best)
