"""How figures grow from turn to turn, where models were asked more than once."""

from dataclasses import asdict, dataclass

from pkb.analyse import Estimate, Row, estimate_fast_p_by_turn
from pkb.report.cells import Column, Table, TableCell, make_share_estimate_cell, make_text_cell
from pkb.report.data import INTERVALS, ReportData, Turns, group_by_clock
from pkb.report.section import Section

ORDER = 60


@dataclass(frozen=True)
class TurnLine:
    """One figure of a run after each turn."""

    label: str
    figure: str
    values: list[Estimate | None]


def make_section(data: ReportData) -> Section:
    p, found = data.p, _make_lines(data.turns, data.p)
    note = (
        f"The share of samples that were right, or fast (surely over {p:g} times the reference's speed), in this turn "
        f"or an earlier one, averaged over problems; {INTERVALS}."
    )
    last = max((len(line.values) for line in found), default=0)
    columns = [Column("run"), Column("figure"), *(Column(f"turn {turn}", True) for turn in range(1, last + 1))]
    table = Table(columns, [_make_cells(line, last) for line in found]) if found else None
    return Section("fast_p by turn", note, table, figures=[asdict(line) for line in found])


def _make_lines(turns: Turns, p: float) -> list[TurnLine]:
    """Return each run's share of right samples, and by kind of clock its share of fast ones."""
    runs: dict[str, list[list[Row]]] = {}
    for rows in turns.values():
        if rows:
            runs.setdefault(rows[0].run, []).append(rows)
    lines = []
    for run, samples in runs.items():
        lines.append(TurnLine(run, "right", estimate_fast_p_by_turn(samples, 0.0)))
        for group in group_by_clock([row for rows in samples for row in rows]) if p > 0 else []:
            same_clock = [[row for row in rows if row.comparable is group.comparable] for rows in samples]
            lines.append(TurnLine(group.label, f"fast_{p:g}", estimate_fast_p_by_turn(same_clock, p)))
    return lines


def _make_cells(line: TurnLine, last: int) -> list[TableCell]:
    names = [make_text_cell(line.label), make_text_cell(line.figure)]
    return [*names, *map(make_share_estimate_cell, line.values), *[TableCell("")] * (last - len(line.values))]
