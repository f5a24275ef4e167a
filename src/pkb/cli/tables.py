"""What a terminal shows of records and problems."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pkb.record import Record

_COLOURS = {"CORRECT": "green", "ENVIRONMENT": "yellow"}


def print_verdicts(records: "list[Record]", out: Path | None) -> None:
    """A table on a terminal; lines have already said it all in a pipe."""
    if sys.stdout.isatty():
        _print_table(records)
    for record in records:
        if record.warnings:
            rules = ", ".join(dict.fromkeys(finding["rule"] for finding in record.warnings))
            print(f"{record.problem}  {record.candidate['name']}: the screen warns of {rules} (see `pkb check`)")
    right = sum(record.correct for record in records)
    timed = "" if any(record.timing for record in records) else ", untimed"
    where = f"; records in {out}" if out else ""
    platform = records[0].environment["platform"]
    print(f"{right} of {len(records)} correct on {platform} at {records[0].setup['world']} ranks{timed}{where}")


def _print_table(records: "list[Record]") -> None:
    timed = any(record.timing for record in records)
    table = Table(box=None, pad_edge=False)
    for heading in ("problem", "candidate", "verdict"):
        table.add_column(heading, no_wrap=True)
    if timed:
        table.add_column("speed-up", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right")
    table.add_column("why", overflow="fold")
    for record in records:
        colour = _COLOURS.get(record.verdict, "red")
        speed = [speed_up(record)] if timed else []
        seconds = f"{sum(record.seconds.values()):.1f}"
        verdict = f"[{colour}]{record.verdict}[/]"
        why = record.reason.replace("[", r"\[")
        table.add_row(record.problem, record.candidate["name"], verdict, *speed, seconds, why)
    Console().print(table)


def speed_up(record: "Record") -> str:
    """How it compares with the reference, with its interval."""
    if not record.timing:
        return "-"
    low, high = record.timing["interval"]
    return f"{record.timing['speedup']:.2f} ({low:.2f}-{high:.2f}) {record.pace}"
