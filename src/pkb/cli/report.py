"""`pkb report`: what runs came to."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.report.cells import Table

_PIPE_WIDTH = 240


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders that `pkb eval --out` wrote.")],
    out: Annotated[Path | None, typer.Option(help="Where the files go; without it RUN/report, of the first.")] = None,
    formats: Annotated[
        str, typer.Option("--format", help="Files to write, with commas: md, csv, json, html; or none.")
    ] = "md,csv,json,html",
    p: Annotated[float, typer.Option("--p", min=0.0, help="What is fast: more than p times as fast.")] = 1.0,
    suite: o.SuiteName = "parallel",
) -> None:
    """Report runs: tables here, and files with one page to look into every sample. Two runs are compared.

    Example: pkb report runs/before runs/after --out report
    """
    from pkb.cli.terminal import safe
    from pkb.report import Report

    wanted = _formats(formats)
    found = Report.of(runs, p)
    # First: whoever reads the tables through `head` wants the files all the same.
    written = found.write(out or runs[0] / "report", wanted, o.chosen_suite(suite))
    print(*(safe(text, len(text)) for text in (found.subtitle, *found.notices)), sep="\n")
    for table in found.tables:
        if table.rows:
            _print(table)
    for path in written:
        print(f"written: {path}")


def _formats(text: str) -> list[str]:
    from pkb.report import FILES

    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FILES:
            raise UsageError(f"unknown format {name!r}; choose from {', '.join(FILES)}, or none")
    return names


def _print(table: "Table") -> None:
    from rich.console import Console
    from rich.table import Table as Shown
    from rich.text import Text

    from pkb.cli.terminal import safe

    # A pipe has no width: nothing is folded there.
    console = Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)
    shown = Shown(box=None, pad_edge=False)
    for column in table.columns:
        shown.add_column(Text(safe(column.name)), justify="right" if column.number else "left", overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(safe(cell.text)) for cell in row))
    title, note = Text(f"\n{safe(table.title)}", "bold"), Text(safe(table.note, len(table.note)), "dim")
    console.print(title, note, shown, sep="\n")
