"""`pkb selftest`: test the judge on this machine."""

import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pkb.cli import _options as o
from pkb.cli._messages import INTERRUPTED
from pkb.judge.worlds.prestart import start_nursery

if TYPE_CHECKING:
    from pkb.tools.selftest.outcome import CheckOutcome, SelftestRecord, StepOutcome

_WIDTH = 80
_STATUS, _NAME = 8, 15
"""The widths of the first two columns."""
_LONGEST_TEXT = 330
"""A row has at most six lines; the record has the whole text."""


def register(app: typer.Typer) -> None:
    app.command("selftest")(selftest)


def selftest(
    platform: o.PlatformName = "auto",
    nproc: Annotated[
        int | None,
        typer.Option(
            "--nproc",
            "--nproc-per-node",
            min=1,
            max=4096,
            help="The most ranks.",
            show_default="4; on the platform gpus one per GPU, at most 8",
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.05, help="Stop in this time; what was not run is listed.")] = 5.0,
    out: Annotated[Path | None, typer.Option(help="File for the record, which can be shared.")] = None,
    as_json: o.Json = False,
) -> None:
    """Test the judge on this machine: does it accept what is right, refuse what is wrong, and time fairly?

    Exit code 0 if all that was run is fine, 1 if something is wrong with the judge here.

    Example: pkb selftest --out selftest.json
    """
    started = time.monotonic()
    start_nursery()
    from pkb.base.atomic import write_whole
    from pkb.tools.selftest.outcome import Status
    from pkb.tools.selftest.runner import Selftest

    def show(check: str, step: "StepOutcome") -> None:
        line = f"{time.monotonic() - started:4.0f} s  {step.status:<{_STATUS}} {check}: {step.name}  {step.text}"
        print(shorten(line, _WIDTH), file=sys.stderr, flush=True)

    record = Selftest(platform, nproc, minutes, on_step=show, started=started).run()
    if out:
        write_whole(out, record.to_json() + "\n")
    print(record.to_json() if as_json else format_selftest(record))
    if out and not as_json:
        print("The record can be shared: it names no user, no host and no path.")
    raise typer.Exit(INTERRUPTED if record.interrupted else int(record.status is Status.FAILED))


def format_selftest(record: "SelftestRecord") -> str:
    """Return the table and its conclusion, at most 80 columns wide."""
    rows = [line for check in record.checks for line in _format_row(check)]
    return "\n".join([*rows, "", *textwrap.wrap(_conclude(record), _WIDTH)])


def _format_row(check: "CheckOutcome") -> list[str]:
    head = f"{check.status:<{_STATUS}} {check.name:<{_NAME}} "
    lines = textwrap.wrap(shorten(check.text, _LONGEST_TEXT), _WIDTH - len(head)) or [""]
    advice = textwrap.wrap(f"-> {check.advice}", _WIDTH - len(head)) if check.advice else []
    return [head + lines[0], *(" " * len(head) + line for line in [*lines[1:], *advice])]


def _conclude(record: "SelftestRecord") -> str:
    from pkb.tools.selftest.outcome import Status

    words = {Status.FAILED: "failed", Status.WARNING: "with a warning", Status.NOT_RUN: "not run"}
    found = {word: record.list_checks(status) for status, word in words.items()}
    told = [f"{word}: {', '.join(names)}" for word, names in found.items() if names]
    partly = [check.name for check in record.checks if check.status is not Status.NOT_RUN and check.is_partial]
    told += [f"run in part: {', '.join(partly)}; give it more --minutes"] if partly else []
    place = f"{record.platform} at up to {record.ranks} ranks in {record.seconds:.0f} s"
    verdict = (
        "interrupted"
        if record.interrupted
        else "FAILED"
        if record.status is Status.FAILED
        else "nothing failed"
        if told
        else "all fine"
    )
    return ". ".join([f"{verdict} on {place}", *told]) + "."


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
