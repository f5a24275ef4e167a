"""Tables that a terminal, Markdown and the page all show: each cell has a text, and the value behind it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from pkb.analyse import Estimate, Row
from pkb.display import format_ratio, format_speedup


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
    interval = " ({:.0f}-{:.0f})".format(*(100 * end for end in estimate.interval)) if estimate.interval else ""
    return TableCell(f"{100 * estimate.value:.0f} %{interval}{over}", estimate.value)


def make_ratio_estimate_cell(estimate: Estimate | None) -> TableCell:
    """Return a ratio with its interval."""
    if estimate is None:
        return TableCell("")
    if estimate.interval is None:
        return TableCell(format_ratio(estimate.value), estimate.value)
    return TableCell(format_speedup(estimate.value, *estimate.interval), estimate.value)


def drop_empty_columns(table: Table) -> Table:
    kept = [at for at in range(len(table.columns)) if any(row[at].text for row in table.rows) or not table.rows]
    rows = [[row[at] for at in kept] for row in table.rows]
    return replace(table, columns=[table.columns[at] for at in kept], rows=rows)
