"""What a section of a report may hold. docs/adding-a-report-section.md shows how to add one."""

from dataclasses import dataclass
from typing import Any, Literal

from pkb.report.cells import Table


@dataclass(frozen=True)
class ChartLine:
    label: str
    values: list[float | None]
    """A share between 0 and 1 for each x of the chart."""
    run: str | None = None
    """The run whose colour the line has; without one, lines get colours in their order."""
    dashed: bool = False


@dataclass(frozen=True)
class LineChart:
    """Shares over x, one line each."""

    about: str
    """A sentence for readers who cannot see the chart."""
    x_label: str
    x: list[float]
    lines: list[ChartLine]
    logarithmic: bool = False
    """Whether the x axis is logarithmic."""
    stepped: bool = False
    """Whether lines fall at single points and do not slope between them."""
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class StackedBar:
    label: str
    parts: dict[str, int]
    """The length of each part, in order."""


@dataclass(frozen=True)
class BarChart:
    """Horizontal bars, each divided into parts. Parts named after a verdict have the verdict's colour."""

    bars: list[StackedBar]
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Section:
    title: str
    note: str = ""
    """A few sentences that explain the figures."""
    table: Table | None = None
    """Without table and chart, a section is only in report.json."""
    chart: LineChart | BarChart | None = None
    figures: Any = None
    """Plain data for report.json, under the section's name; None for nothing."""
    fold_table: bool = False
    """Whether the page shows the table only when a reader unfolds it."""
    on_page: bool = True
    """Whether the page has the section; the terminal and report.md have it in any case."""
    if_empty: str = ""
    """What the page says in place of a chart without lines."""
