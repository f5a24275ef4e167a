"""`pkb report`: summarise runs in tables and files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pkb.cli import _options as o
from pkb.errors import UsageError

if TYPE_CHECKING:
    from pkb.report.cells import Table
    from pkb.report.section import Section


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    context: typer.Context,
    runs: o.Runs,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files.", show_default="the folder report in the first run")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", help="Files to write, with commas: md, csv, json, html; or none.")
    ] = "md,csv,json,html",
    p: Annotated[
        float,
        typer.Option(
            "--p", min=0.0, help="A kernel counts as fast if it is more than p times as fast as the reference."
        ),
    ] = 1.0,
    suite: o.SuiteName = "parallel",
) -> None:
    """Print tables about runs, and write files, one of them a page that shows every sample. Two runs are compared.

    Example: pkb report runs/before runs/after --out report
    """
    from pkb.cli._terminal import make_printable
    from pkb.problems.suite import find_suite
    from pkb.report import Report

    wanted = _parse_formats(formats)
    if not wanted:
        o.refuse_unused(context, ["out"], "with --format none, which writes nothing")
    found = Report.of(runs, p)
    # The files come first: `pkb report RUN | head` must write them too.
    folder = out or _find_own_folder(runs[0])
    if wanted:
        o.prepare_folder(folder)
    written = found.write(folder, wanted, find_suite(suite))
    print(*(make_printable(text, len(text)) for text in (found.subtitle, *found.notices)), sep="\n")
    for section in found.sections.values():
        if section.table and section.table.rows:
            _print(section, section.table)
    for path in written:
        print(make_printable(f"written: {path}", 4000))


def _find_own_folder(run: Path) -> Path:
    """Return the folder of a run's report. Raises UsageError where it is a link that leads out of the run."""
    folder = run / "report"
    if folder.is_symlink():
        raise UsageError(f"{folder} is a symbolic link, through which nothing is written; name a folder with --out")
    return folder


def _parse_formats(text: str) -> list[str]:
    from pkb.report import FILES

    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FILES:
            raise UsageError(f"unknown format {name!r}; choose from {', '.join(FILES)}, or none")
    return names


def _print(section: "Section", table: "Table") -> None:
    from rich.table import Table as RichTable
    from rich.text import Text

    from pkb.cli._terminal import make_console, make_printable

    shown = RichTable(box=None, pad_edge=False)
    for column in table.columns:
        justify: Literal["left", "right"] = "right" if column.number else "left"
        shown.add_column(Text(make_printable(column.name)), justify=justify, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(make_printable(cell.text)) for cell in row))
    title = Text(f"\n{make_printable(section.title)}", "bold")
    note = Text(make_printable(section.note, len(section.note)), "dim")
    make_console().print(title, note, shown, sep="\n")
