"""Cells that a terminal, Markdown and the page all show: a text, and the value behind it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from pkb.analyse import Estimate, Row


class Cell(NamedTuple):
    text: str
    value: float | str | None = None
    """What it is sorted by."""
    row: Row | None = None
    """The sample that it speaks of."""


@dataclass(frozen=True)
class Column:
    name: str
    number: bool = False
    about: str = ""


@dataclass(frozen=True)
class Table:
    key: str
    title: str
    note: str
    columns: list[Column]
    rows: list[list[Cell]]
    heat: bool = False
    """Whether its values are shares, to be shaded."""
    total: bool = False
    """Whether the last row stands for all others."""


def speed(row: Row) -> str:
    if row.speedup is None or row.low is None or row.high is None:
        return ""
    return f"{ratio(row.speedup)} ({ratio(row.low)}-{ratio(row.high)})"


def ratio(value: float) -> str:
    if value >= 9.95:
        return f"{value:.3g}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"


def duration(us: float | None) -> str:
    if us is None:
        return ""
    size, unit = (1e6, "s") if us >= 999500 else (1e3, "ms") if us >= 999.5 else (1, "us")
    return f"{us / size:#.3g}".removesuffix(".") + f" {unit}"


def text(text: str) -> Cell:
    return Cell(text, text or None)


def count(number: int) -> Cell:
    return Cell(str(number), number)


def share_of(estimate: Estimate | None, problems: int | None = None) -> Cell:
    """Says over how many problems it is where that is not all of them."""
    if estimate is None:
        return Cell("")
    fewer = problems is not None and estimate.problems < problems
    over = f" over {estimate.problems}" if fewer else ""
    interval = f"({100 * estimate.low:.0f}-{100 * estimate.high:.0f})"
    return Cell(f"{100 * estimate.value:.0f} % {interval}{over}", estimate.value)


def share(share: float | None) -> Cell:
    return Cell("" if share is None else f"{100 * share:.0f} %", share)


def ratio_of(estimate: Estimate | None) -> Cell:
    if estimate is None:
        return Cell("")
    return Cell(f"{ratio(estimate.value)} ({ratio(estimate.low)}-{ratio(estimate.high)})", estimate.value)


def without_empty(table: Table) -> Table:
    """Less the columns that say nothing."""
    kept = [at for at in range(len(table.columns)) if any(row[at].text for row in table.rows) or not table.rows]
    rows = [[row[at] for at in kept] for row in table.rows]
    return replace(table, columns=[table.columns[at] for at in kept], rows=rows)
