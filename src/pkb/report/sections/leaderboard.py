"""The leaderboard: one line per run."""

from dataclasses import asdict

from pkb.analyse import ALL, Coverage, Estimate, Standing
from pkb.analyse.tables import KS
from pkb.report.cells import (
    Column,
    Table,
    TableCell,
    drop_empty_columns,
    make_count_cell,
    make_ratio_estimate_cell,
    make_share_estimate_cell,
    make_text_cell,
)
from pkb.report.data import INTERVALS, ReportData
from pkb.report.section import Section
from pkb.row import PUBLISHED

ORDER = 10


def make_section(data: ReportData) -> Section:
    p, ranked = data.p, [one for one in data.standings if one.summary.category == ALL]
    ranked.sort(key=_make_sort_key, reverse=True)
    columns = [
        Column("run"),
        Column("model"),
        Column("backend"),
        Column("problems", True, "of those that any run has samples of"),
        Column("samples", True, "without ENVIRONMENT, and without degenerate problems"),
        Column("right", True),
        *(Column(f"pass@{k}", True, f"the chance that one of {k} is right") for k in KS),
        *(Column(f"fast_{p:g}@{k}", True, f"and surely over {p:g} times the reference's speed") for k in KS),
        Column("speed-up", True, "geometric mean over right samples"),
        Column("median", True, "of the speed-ups"),
    ]
    note = (
        f"{_describe_coverage(data.coverage)}Ranked by fast_{p:g}@1, then pass@1; {INTERVALS}. @k is over the problems "
        "that have k samples. CPU times do not enter. Runs with published inputs come last."
    )
    table = drop_empty_columns(Table(columns, [_make_cells(one) for one in ranked]))
    return Section("Leaderboard", note, table, figures=[asdict(one) for one in data.standings])


def _describe_coverage(coverage: Coverage) -> str:
    if len(coverage.by_run) < 2:
        return ""
    ranked, shared = len(coverage.ranked), len(coverage.shared)
    left = "; runs that share too few of them are listed below, on their own problems, and not ranked"
    compared = f"{ranked} runs are compared on the {shared} problems that all of them have"
    alone = f"One run is ranked, on its {shared} problems"
    return (compared if ranked > 1 else alone) + (f"{left}. " if ranked < len(coverage.by_run) else ". ")


def _make_sort_key(standing: Standing) -> tuple[bool, bool, float, float]:
    fast, right = standing.summary.fast_at[1], standing.summary.pass_at[1]
    return standing.ranked, standing.inputs != PUBLISHED, _find_value(fast), _find_value(right)


def _find_value(estimate: Estimate | None) -> float:
    return -1.0 if estimate is None else estimate.value


def _make_cells(standing: Standing) -> list[TableCell]:
    summary, model = standing.summary, "" if standing.model == standing.run else standing.model
    names = map(make_text_cell, (standing.run, model, standing.backend))
    rank = "" if standing.ranked else ", not ranked"
    of_all = f" of {standing.known}" if standing.covered < standing.known else ""
    covered = TableCell(f"{standing.covered}{of_all}{rank}", standing.covered)
    counts = [covered, *map(make_count_cell, (summary.samples, summary.correct))]
    estimates = [*summary.pass_at.values(), *summary.fast_at.values()]
    shares = [make_share_estimate_cell(estimate, summary.problems) for estimate in estimates]
    ratios = map(make_ratio_estimate_cell, (summary.geometric_mean, summary.median))
    return [*names, *counts, *shares, *ratios]
