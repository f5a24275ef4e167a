"""Tables that a terminal, Markdown and the page all show: each cell has a text, and the value behind it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from pkb.analyse import Estimate, Row


class TableCell(NamedTuple):
    text: str
    value: float | str | None = None
    """The value by which the page sorts the column."""
    row: Row | None = None
    """The sample to which the page links the cell."""


@dataclass(frozen=True)
class Column:
    name: str
    number: bool = False
    """Whether the column has numbers, which are aligned to the right."""
    about: str = ""
    """An explanation, which the page shows when the mouse points at the column's name."""


@dataclass(frozen=True)
class Table:
    columns: list[Column]
    rows: list[list[TableCell]]
    heat: bool = False
    """Whether the values are shares, which the page shades."""
    total: bool = False
    """Whether the last row summarises all others."""


def format_speedup(row: Row) -> str:
    """Return a sample's speed-up with its interval; empty without one."""
    if row.speedup is None or row.low is None or row.high is None:
        return ""
    return f"{format_ratio(row.speedup)} ({format_ratio(row.low)}-{format_ratio(row.high)})"


def format_ratio(value: float) -> str:
    if value >= 9.95:
        return f"{value:.3g}"
    return f"{value:.2f}" if value >= 0.0995 else f"{value:.2g}"


def format_duration(us: float | None) -> str:
    if us is None:
        return ""
    size, unit = (1e6, "s") if us >= 999500 else (1e3, "ms") if us >= 999.5 else (1, "us")
    return f"{us / size:#.3g}".removesuffix(".") + f" {unit}"


def make_text_cell(text: str) -> TableCell:
    return TableCell(text, text or None)


def make_count_cell(number: int) -> TableCell:
    return TableCell(str(number), number)


def make_share_cell(share: float | None) -> TableCell:
    return TableCell("" if share is None else f"{100 * share:.0f} %", share)


def make_share_estimate_cell(estimate: Estimate | None, problems: int | None = None) -> TableCell:
    """Return a share with its interval, and the number of problems where the estimate is over fewer than `problems`."""
    if estimate is None:
        return TableCell("")
    fewer = problems is not None and estimate.problems < problems
    over = f" over {estimate.problems}" if fewer else ""
    interval = f"({100 * estimate.low:.0f}-{100 * estimate.high:.0f})"
    return TableCell(f"{100 * estimate.value:.0f} % {interval}{over}", estimate.value)


def make_ratio_estimate_cell(estimate: Estimate | None) -> TableCell:
    """Return a ratio with its interval."""
    if estimate is None:
        return TableCell("")
    interval = f"({format_ratio(estimate.low)}-{format_ratio(estimate.high)})"
    return TableCell(f"{format_ratio(estimate.value)} {interval}", estimate.value)


def drop_empty_columns(table: Table) -> Table:
    kept = [at for at in range(len(table.columns)) if any(row[at].text for row in table.rows) or not table.rows]
    rows = [[row[at] for at in kept] for row in table.rows]
    return replace(table, columns=[table.columns[at] for at in kept], rows=rows)
