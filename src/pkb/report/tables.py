"""The tables of a report."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pkb.analyse import (
    ALL,
    Comparison,
    Estimate,
    Row,
    Standing,
    Summary,
    compare_runs,
    compute_fast_p_curve,
    count_failures,
    estimate_fast_p_by_turn,
    list_timed_rows,
    make_leaderboard,
)
from pkb.analyse.estimates import estimate_geometric_mean as geometric_mean
from pkb.analyse.rows import PUBLISHED
from pkb.analyse.tables import KS
from pkb.report.cells import (
    Cell,
    Column,
    Table,
    count,
    duration,
    ratio,
    ratio_of,
    share,
    share_of,
    speed,
    text,
    without_empty,
)

PS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 4.0)
_INTERVALS = "95 % intervals by bootstrap over problems"


@dataclass(frozen=True)
class Line:
    """The samples behind one curve: a run's, by one kind of clock."""

    run: str
    cpu: bool
    rows: list[Row]

    @property
    def label(self) -> str:
        return f"{self.run} (CPU times)" if self.cpu else self.run


Turns = dict[str, list[Row]]
"""By a sample's folder, a row for each of its turns."""


def tables(rows: list[Row], p: float, turns: Turns | None = None) -> list[Table]:
    """All that apply, in the order of reading."""
    runs, standings = by_run(rows), make_leaderboard(rows, p=p)
    order = list(dict.fromkeys(row.category for row in sorted(rows, key=lambda row: row.number)))
    heat_maps = [_categories(standings, order), *_fast_categories(standings, order, p)]
    curves = [_fast_p(rows), *_by_turn(turns or {}, p)]
    return [_leaderboard(standings, p), *_comparison(runs), *heat_maps, *curves, _speedups(rows), _failures(runs)]


def by_run(rows: Iterable[Row]) -> dict[str, list[Row]]:
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault(row.run, []).append(row)
    return runs


def lines(rows: list[Row]) -> list[Line]:
    """Those that have a time. CPU times never share a line with others."""
    split = [
        Line(run, cpu, [row for row in found if (not row.comparable) is cpu])
        for run, found in by_run(rows).items()
        for cpu in (False, True)
    ]
    return [line for line in split if list_timed_rows(line.rows)]


@dataclass(frozen=True)
class TurnLine:
    """How one figure of a run grows from turn to turn."""

    label: str
    figure: str
    values: list[Estimate | None]


def turn_lines(turns: Turns, p: float) -> list[TurnLine]:
    """What is right, and by kind of clock, what is fast. Without samples in turns, none."""
    found: dict[str, list[list[Row]]] = {}
    for rows in turns.values():
        if rows:
            found.setdefault(rows[0].run, []).append(rows)
    made = []
    for run, samples in found.items():
        made.append(TurnLine(run, "right", estimate_fast_p_by_turn(samples, 0.0)))
        for line in lines([row for rows in samples for row in rows]) if p > 0 else []:
            same_clock = [[row for row in rows if (not row.comparable) is line.cpu] for rows in samples]
            made.append(TurnLine(line.label, f"fast_{p:g}", estimate_fast_p_by_turn(same_clock, p)))
    return made


def best(rows: list[Row]) -> list[Row]:
    """The fastest right sample of each problem, run and kind of clock, in the problems' order."""
    fastest = {(row.run, row.problem, not row.comparable): row for row in reversed(list_timed_rows(rows))}
    order = list(by_run(rows))
    return sorted(fastest.values(), key=lambda row: (not row.comparable, row.number, order.index(row.run)))


def _leaderboard(standings: list[Standing], p: float) -> Table:
    ranked = [one for one in standings if one.summary.category == ALL]
    ranked.sort(key=_rank, reverse=True)
    columns = [
        Column("run"),
        Column("model"),
        Column("backend"),
        Column("problems", True),
        Column("samples", True, "without those that the machine failed, and of degenerate problems"),
        Column("right", True),
        *(Column(f"pass@{k}", True, f"the chance that one of {k} is right") for k in KS),
        *(Column(f"fast_{p:g}@{k}", True, f"and surely over {p:g} times the reference's speed") for k in KS),
        Column("speed-up", True, "geometric mean over right samples"),
        Column("median", True, "of the speed-ups"),
    ]
    cells = [_standing(standing) for standing in ranked]
    note = (
        f"Ranked by fast_{p:g}@1, then pass@1; {_INTERVALS}. @k is over the problems that have k samples. "
        "Times taken on CPUs do not enter. Runs with published inputs come last."
    )
    return without_empty(Table("leaderboard", "Leaderboard", note, columns, cells))


def _rank(standing: Standing) -> tuple[bool, float, float]:
    fast, right = standing.summary.fast_at[1], standing.summary.pass_at[1]
    return standing.inputs != PUBLISHED, _value(fast), _value(right)


def _standing(standing: Standing) -> list[Cell]:
    model = "" if standing.model == standing.run else standing.model
    names, summary = [text(standing.run), text(model), text(standing.backend)], standing.summary
    counts = [count(summary.problems), count(summary.samples), count(summary.correct)]
    estimates = [*summary.pass_at.values(), *summary.fast_at.values()]
    shares = [share_of(estimate, summary.problems) for estimate in estimates]
    return [*names, *counts, *shares, ratio_of(summary.geometric_mean), ratio_of(summary.median)]


def _categories(standings: list[Standing], order: list[str]) -> Table:
    note = f"pass@1: the share of samples that are right, averaged over problems; {_INTERVALS}."
    rows = _by_category(standings, order, lambda summary: summary.pass_at[1])
    return Table("categories", "Right, by category", note, _by_run(standings), rows, heat=True, total=True)


def _fast_categories(standings: list[Standing], order: list[str], p: float) -> list[Table]:
    note = f"fast_{p:g}@1: right, and surely over {p:g} times the reference's speed; {_INTERVALS}. Without CPU times."
    rows = _by_category(standings, order, lambda summary: summary.fast_at[1])
    table = Table("fast_categories", "Fast, by category", note, _by_run(standings), rows, heat=True, total=True)
    return [table] if any(cell.value is not None for row in rows for cell in row[1:]) else []


def _by_run(standings: list[Standing]) -> list[Column]:
    return [Column("category"), *(Column(run, True) for run in dict.fromkeys(one.run for one in standings))]


def _by_category(
    standings: list[Standing], order: list[str], figure: Callable[[Summary], Estimate | None]
) -> list[list[Cell]]:
    found = {(one.summary.category, one.run): figure(one.summary) for one in standings}
    runs = list(dict.fromkeys(one.run for one in standings))
    return [[text(name), *(share_of(found.get((name, run))) for run in runs)] for name in [*order, ALL]]


def _fast_p(rows: list[Row]) -> Table:
    note = (
        "fast_p: the share of samples that are right and surely more than p times as fast as the reference (the low "
        "end of the 95 % interval), averaged over problems. At p = 0: right, timed or not."
    )
    columns = [Column("run"), *(Column(f"p = {p:g}", True) for p in PS)]
    cells = [[text(line.label), *map(share, compute_fast_p_curve(line.rows, PS))] for line in lines(rows)]
    return Table("fast_p", "fast_p over p", note, columns, cells)


def _by_turn(turns: Turns, p: float) -> list[Table]:
    note = (
        f"The share of samples of which some turn, up to this one, is right, or fast (surely over {p:g} times the "
        f"reference's speed), averaged over problems; {_INTERVALS}."
    )
    found = turn_lines(turns, p)
    last = max((len(line.values) for line in found), default=0)
    columns = [Column("run"), Column("figure"), *(Column(f"turn {turn}", True) for turn in range(1, last + 1))]
    cells = [
        [text(line.label), text(line.figure), *map(share_of, line.values), *[Cell("")] * (last - len(line.values))]
        for line in found
    ]
    return [Table("turns", "fast_p by turn", note, columns, cells)] if found else []


def _speedups(rows: list[Row]) -> Table:
    note = "The fastest right sample of each problem and run, with its 95 % interval over paired blocks."
    names = ["problem", "run", "sample", "speed-up", "pace", "reference", "candidate", "% of light", "clock"]
    numbers = ("speed-up", "reference", "candidate", "% of light")
    cells = [
        [
            Cell(row.problem, row.number, row),
            text(row.run),
            text(row.sample),
            Cell(speed(row), row.speedup),
            text(row.pace),
            Cell(duration(row.reference_us), row.reference_us),
            Cell(duration(row.candidate_us), row.candidate_us),
            Cell("" if row.percent is None else f"{row.percent:.3g}", row.percent),
            text(row.platform if row.comparable else "CPU times"),
        ]
        for row in best(rows)
    ]
    columns = [Column(name, name in numbers) for name in names]
    return without_empty(Table("speedups", "Speed-up per problem", note, columns, cells))


def _failures(runs: dict[str, list[Row]]) -> Table:
    note = "Shares are of the samples that count. ENVIRONMENT is the machine's fault or ours, and counts for nobody."
    columns = [Column("run"), Column("verdict"), Column("samples", True), Column("share", True), Column("by check")]
    cells = [
        [text(run), text(one.verdict), count(one.count), share(one.share), text(_checks(one.checks))]
        for run, found in runs.items()
        for one in count_failures(found)
    ]
    return Table("failures", "Failures", note, columns, cells)


def _checks(checks: dict[str, int]) -> str:
    return ", ".join(f"{check} {count}" for check, count in checks.items() if check)


def _comparison(runs: dict[str, list[Row]]) -> list[Table]:
    if len(runs) != 2:
        return []
    (before, rows_a), (after, rows_b) = runs.items()
    found = compare_runs(rows_a, rows_b)
    note = (
        f"From {before} to {after}: {_in_words(found)}.{_overall(found)} Each side's best sample of a problem; the "
        "ratio is of the speed-ups. noise: both right, and the intervals overlap or the ratio is within 2 % of 1. "
        "same: neither is right, or their times, on CPUs or under other settings, cannot be compared."
    )
    cells = [
        [
            Cell(one.problem, one.number),
            text(one.change),
            Cell("" if one.ratio is None else ratio(one.ratio), one.ratio),
            _outcome(one.before),
            _outcome(one.after),
            text(", ".join(one.other_settings)),
        ]
        for one in found
    ]
    columns = [Column("problem"), Column("change"), Column("ratio", True), Column(before), Column(after)]
    columns += [Column("other settings")]
    return [Table("comparison", f"{before} against {after}", note, columns, cells)]


def _in_words(found: list[Comparison]) -> str:
    words = [one.change for one in found]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words)))


def _overall(found: list[Comparison]) -> str:
    change = geometric_mean({one.problem: [one.ratio] for one in found if one.ratio})
    if change is None or change.problems < 2:
        return ""
    return f" The mean ratio over {change.problems} problems timed on both sides is {ratio_of(change).text}."


def _outcome(row: Row | None) -> Cell:
    if row is None:
        return Cell("")
    return Cell(f"{row.verdict} {speed(row)}".strip(), row.verdict, row)


def _value(estimate: Estimate | None) -> float:
    return -1.0 if estimate is None else estimate.value
