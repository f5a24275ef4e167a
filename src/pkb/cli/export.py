"""`pkb export`: write the records of runs to one file."""

from pathlib import Path
from typing import Annotated

import typer

from pkb.cli import _options as o
from pkb.cli._messages import print_skipped


def register(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    runs: o.Runs,
    out: Annotated[Path, typer.Option(help="FILE.jsonl, or FILE.parquet (needs pyarrow).")],
) -> None:
    """Write the latest records of runs, with their candidates, to one file. docs/record.md explains its fields.

    Example: pkb export runs/mine runs/theirs --out records.jsonl
    """
    from pkb.analyse.export import export_runs
    from pkb.runs import Run

    found = [Run(folder) for folder in runs]
    count = export_runs(found, out)
    for run in found:
        print_skipped(run.damaged)
    print(f"{count} records written to {out}")
