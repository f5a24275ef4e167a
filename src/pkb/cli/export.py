"""`pkb export` and `pkb import`: runs as one file, and back."""

import sys
from pathlib import Path
from typing import Annotated

import typer

Runs = Annotated[list[Path], typer.Argument(help="Folders that `pkb eval --out` wrote.")]


def register(app: typer.Typer) -> None:
    app.command("export")(export)
    app.command("import")(import_)


def export(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="FILE.jsonl, or FILE.parquet (needs pyarrow).")],
) -> None:
    """Write the latest records of runs, with their candidates, to one file. docs/record.md has its fields.

    Example: pkb export runs/mine runs/theirs --out records.jsonl
    """
    from pkb.analyse import export as exchange
    from pkb.runs import Run

    found = [Run(folder) for folder in runs]
    count = exchange.write(found, out)
    for one in found:
        _tell(map(str, one.damaged))
    print(f"{count} records written to {out}")


def import_(
    file: Annotated[Path, typer.Argument(help="What `pkb export` wrote, or lines of `pkb eval --json`.")],
    run: Annotated[Path, typer.Option(help="The run to add them to; a folder of runs if the file has several.")],
) -> None:
    """Add the records of a file to a run. Records that are there already stay; the imported ones are the latest.

    Example: pkb import records.jsonl --run runs/theirs
    """
    from pkb.analyse import export as exchange

    count, damaged = exchange.read(file, run)
    _tell(map(str, damaged))
    print(f"{count} records added to {run}")


def _tell(damaged: "map[str]") -> None:
    for one in damaged:
        print(f"skipped, damaged: {one}", file=sys.stderr)
