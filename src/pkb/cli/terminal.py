"""What a terminal shows of records and problems."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pkb.judge.profiling.ncu import Kernel
    from pkb.record import Record

_MOST_ROWS = 8
_PIPE_WIDTH = 240
_NAME_LENGTH, _NOTE_LENGTH = 100, 500
_COLOURS = {"CORRECT": "green", "ENVIRONMENT": "yellow"}


def print_columns(words: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Words flush left, figures flush right; nothing is folded in a pipe, which has no width."""
    table = Table(box=None, pad_edge=False)
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in figures:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    (Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)).print(table)


def print_verdicts(records: "list[Record]", out: Path | None) -> None:
    """A table on a terminal; lines have already said it all in a pipe."""
    if sys.stdout.isatty():
        _print_table(records)
    for record in records:
        if record.profile:
            print(f"{record.problem}  {record.candidate['name']}", *profile_lines(record.profile), sep="\n  ")
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


def profile_lines(profile: dict[str, Any]) -> list[str]:
    """Where the time went, in a few lines."""
    shares = [f"rank {rank} {share:.0%}" for rank, share in profile["idle"].items()]
    idle = f"; idle: {', '.join(shares)}" if shares else ""
    top = profile["top"][:_MOST_ROWS]
    rows = [f"{row['share']:6.1%}  {_cost(row['calls'], row['us'])}  {safe(row['name'])}" for row in top]
    notes = [safe(note, _NOTE_LENGTH) for note in profile["notes"]]
    return [f"{profile['of']} in {profile['calls']} calls{idle}", *rows, *notes]


def kernel_lines(kernels: "list[Kernel]") -> list[str]:
    """What ncu counted, in a few lines."""
    rows = [
        f"{_percent(k.compute)}  {_percent(k.memory)}  {_cost(k.calls, k.us)}  {safe(k.name)}"
        for k in kernels[:_MOST_ROWS]
    ]
    return ["compute and memory throughput, of the most that the GPU can do", *rows]


def _percent(value: float | None) -> str:
    return "   n/a" if value is None else f"{value:5.1f}%"


def _cost(calls: int, us: float) -> str:
    return f"{calls:5} x {us:10.1f} us"


def safe(text: str, length: int = _NAME_LENGTH) -> str:
    """A candidate chooses its kernels' names: nothing in them may steer a terminal."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown if len(shown) <= length else f"{shown[:length]}..."
