"""Tables and lines that show records, problems and profiles on a terminal or in a pipe."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pkb.base.printable import clean_line
from pkb.display import CPU_TIMES, format_duration, format_speedup

if TYPE_CHECKING:
    from pkb.judge.profiling.ncu import KernelCounters
    from pkb.record import ProfileSummary, Record

_MOST_ROWS = 8
_PIPE_WIDTH = 240
_NAME_LENGTH, _NOTE_LENGTH = 100, 500


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


def print_summary(records: "list[Record]", out: Path | None) -> None:
    """Print one line about all records of an evaluation; each had its own lines when it was judged."""
    correct = sum(record.correct for record in records)
    timed = "" if any(record.timing for record in records) else ", untimed"
    where = f"; records in {out}" if out else ""
    platform, world = records[0].environment.platform, records[0].setup.world
    print(f"{correct} of {len(records)} correct on {platform} at {world} ranks{timed}{where}")


def format_record(record: "Record", kept: bool = False) -> str:
    """Return the line of a record: first the verdict, then of what; `kept` says that an earlier judgement is shown."""
    own = record.candidate.name
    name = [] if own == f"{record.problem}_{record.candidate.backend}" else [own]
    when = f"kept from {record.when[:16].replace('T', ' ')}" if kept else f"{sum(record.seconds.values()):.1f} s"
    return "  ".join([record.verdict, record.problem, *name, when])


def format_details(record: "Record") -> list[str]:
    """Return the lines below a record's: the reason, then speed-ups, warnings and the profile, where there are any."""
    lines = [record.reason, *_format_speedups(record)]
    if record.warnings:
        rules = ", ".join(dict.fromkeys(finding.rule for finding in record.warnings))
        lines.append(f"the screen warns of {rules} (see `pkb check`)")
    return lines + (format_profile(record.profile) if record.profile else [])


def _format_speedups(record: "Record") -> list[str]:
    if not record.timing:
        return []
    timing = record.timing
    clock = "" if record.environment.comparable_times else f", {CPU_TIMES}"
    times = f"{format_duration(timing.candidate_us)} against {format_duration(timing.reference_us)}"
    lines = [
        f"{record.pace}: {format_speedup(timing.speedup, *timing.interval)} as fast as the reference, {times}{clock}"
    ]
    for name, one in timing.baselines.items():
        if one.failed or one.speedup is None or one.interval is None:
            lines.append(f"{name}: not timed: {one.failed}")
        else:
            stored = ", stored times" if one.stored else ""
            lines.append(f"{one.pace}: {format_speedup(one.speedup, *one.interval)} as fast as {name}{stored}{clock}")
    return lines


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
