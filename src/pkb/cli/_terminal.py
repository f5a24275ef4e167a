"""Tables and lines that show records, problems and profiles on a terminal or in a pipe."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pkb.base.printable import clean_line

if TYPE_CHECKING:
    from pkb.judge.profiling.ncu import KernelCounters
    from pkb.record import ProfileSummary, Record

_MOST_ROWS = 8
_PIPE_WIDTH = 240
_NAME_LENGTH, _NOTE_LENGTH = 100, 500
_COLOURS = {"CORRECT": "green", "ENVIRONMENT": "yellow"}


class _PipeConsole(Console):
    def on_broken_pipe(self) -> None:
        # rich would exit with code 1; the command line decides what a reader that is gone means.
        raise BrokenPipeError


def make_console() -> Console:
    """Return a console for stdout. A pipe has no width of its own and gets a wide one: nothing is folded there."""
    return Console() if sys.stdout.isatty() else _PipeConsole(width=_PIPE_WIDTH)


def print_columns(words: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; columns of words are flush left, those of figures flush right."""
    table = Table(box=None, pad_edge=False)
    for heading in words:
        table.add_column(heading, no_wrap=True)
    for heading in figures:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        # Text: brackets in it are no markup.
        table.add_row(*(Text(clean_line(cell)) for cell in row))
    make_console().print(table)


def print_verdicts(records: "list[Record]", out: Path | None) -> None:
    """Print the records of an evaluation: a table on a terminal; in a pipe, each had its line when it was judged."""
    if sys.stdout.isatty():
        _print_table(records)
    for record in records:
        name = f"{record.problem}  {record.candidate.name}"
        if record.profile:
            print(name, *format_profile(record.profile), sep="\n  ")
        if record.warnings:
            rules = ", ".join(dict.fromkeys(finding.rule for finding in record.warnings))
            print(f"{name}: the screen warns of {rules} (see `pkb check`)")
    correct = sum(record.correct for record in records)
    timed = "" if any(record.timing for record in records) else ", untimed"
    where = f"; records in {out}" if out else ""
    platform, world = records[0].environment.platform, records[0].setup.world
    print(f"{correct} of {len(records)} correct on {platform} at {world} ranks{timed}{where}")


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
        verdict = Text(record.verdict, _COLOURS.get(record.verdict, "red"))
        speed = [format_speedup(record)] if timed else []
        seconds = f"{sum(record.seconds.values()):.1f}"
        name, why = Text(record.candidate.name), Text(record.reason)
        table.add_row(Text(record.problem), name, verdict, *speed, seconds, why)
    Console().print(table)


def format_record(record: "Record") -> str:
    """Return the line that a pipe gets for a record."""
    speed = f"  {format_speedup(record)}" if record.timing else ""
    name = f"{record.problem}  {record.candidate.name}"
    return f"{name}  {record.verdict}{speed}  {sum(record.seconds.values()):.1f} s  {record.reason}"


def format_speedup(record: "Record") -> str:
    """Return a candidate's speed-up over the reference, with its interval."""
    if not record.timing:
        return "-"
    low, high = record.timing.interval
    return f"{record.timing.speedup:.2f} ({low:.2f}-{high:.2f}) {record.pace}"


def format_profile(profile: "ProfileSummary") -> list[str]:
    """Return lines that say where the time of the profiled calls went."""
    shares = [f"rank {rank} {share:.0%}" for rank, share in profile.idle.items()]
    idle = f"; idle: {', '.join(shares)}" if shares else ""
    top = profile.top[:_MOST_ROWS]
    rows = [f"{row.share:6.1%}  {_format_cost(row.calls, row.us)}  {make_printable(row.name)}" for row in top]
    notes = [make_printable(note, _NOTE_LENGTH) for note in profile.notes]
    return [f"{profile.of} in {profile.calls} calls{idle}", *rows, *notes]


def format_counters(kernels: "list[KernelCounters]") -> list[str]:
    """Return lines that say what ncu counted for each kernel."""
    rows = [
        f"{_format_percent(k.compute)}  {_format_percent(k.memory)}  {_format_cost(k.calls, k.us)}  "
        f"{make_printable(k.name)}"
        for k in kernels[:_MOST_ROWS]
    ]
    return ["compute and memory throughput, in percent of the GPU's peak", *rows]


def _format_percent(value: float | None) -> str:
    return "   n/a" if value is None else f"{value:5.1f}%"


def _format_cost(calls: int, us: float) -> str:
    return f"{calls:5} x {us:10.1f} us"


def make_printable(text: str, length: int = _NAME_LENGTH) -> str:
    """Return the text without control characters: candidates choose names, and must not control a terminal."""
    return clean_line(text, length + len("..."))
