"""`pkb import`: add the records of a file to a run."""

from pathlib import Path
from typing import Annotated

import typer

from pkb.cli._messages import print_skipped


def register(app: typer.Typer) -> None:
    app.command("import")(import_records)


def import_records(
    file: Annotated[Path, typer.Argument(help="A file that `pkb export` wrote, or lines of `pkb eval --json`.")],
    run: Annotated[Path, typer.Option(help="The run to add them to; a folder of runs if the file has several.")],
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out entries that cannot be read, and add the others.")
    ] = False,
) -> None:
    """Add the records of a file to a run. Records that are there already stay; the imported ones are the latest.

    A file with an entry that cannot be read is refused as a whole, unless --skip-damaged is given.

    Example: pkb import records.jsonl --run runs/theirs
    """
    from pkb.analyse.export import import_runs

    count, damaged = import_runs(file, run, skip_damaged)
    print_skipped(damaged)
    print(f"{count} records added to {run}")
