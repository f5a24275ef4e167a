"""fast_p over p: how many samples are how fast."""

from typing import Any

from pkb.analyse import Row, compute_fast_p_curve, list_timed_rows
from pkb.report.cells import Column, Table, make_share_cell, make_text_cell
from pkb.report.data import ClockGroup, ReportData, group_by_clock
from pkb.report.section import ChartLine, LineChart, Section

ORDER = 50
_PS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0)
_POINTS = 81
_NOTE = (
    "fast_p: the share of samples that are right and surely more than p times as fast as the reference (the low end of "
    "the 95 % interval), averaged over the problems that all ranked runs have. At p = 0: right, timed or not."
)


def make_section(data: ReportData) -> Section:
    groups = group_by_clock(data.compared_rows)
    labels = [data.coverage.label(group.run) + group.clock for group in groups]
    curves = [(group, compute_fast_p_curve(group.rows, _PS)) for group in groups]
    columns = [Column("run"), *(Column(f"p = {p:g}", True) for p in _PS)]
    lines = zip(labels, curves, strict=True)
    rows = [[make_text_cell(label), *map(make_share_cell, shares)] for label, (_, shares) in lines]
    return Section(
        "fast_p over p",
        _NOTE,
        Table(columns, rows),
        _make_chart(data.compared_rows, groups, labels),
        figures=[_make_figures(group, shares) for group, shares in curves],
        fold_table=True,
        if_empty="No sample here is both correct and timed: judge with --measure-perf to fill this chart.",
    )


def _make_chart(rows: list[Row], groups: list[ClockGroup], labels: list[str]) -> LineChart:
    sure = [row.low for row in list_timed_rows(rows) if row.low]
    low, high = min([0.5, *sure]) / 1.2, max([2.0, *sure]) * 1.2
    ps = [low * (high / low) ** (at / (_POINTS - 1)) for at in range(_POINTS)]
    lines = [
        ChartLine(label, compute_fast_p_curve(group.rows, ps), group.run, not group.comparable)
        for label, group in zip(labels, groups, strict=True)
    ]
    about = "fast_p over p, one line per run; the values are in the table below"
    return LineChart(about, "p: times as fast as the reference", ps, lines, logarithmic=True, stepped=True)


def _make_figures(group: ClockGroup, shares: list[float | None]) -> dict[str, Any]:
    return {"run": group.run, "cpu_times": not group.comparable, "fast_p": dict(zip(_PS, shares, strict=True))}
