"""Progress of a batch: a bar on a terminal, plain lines in a pipe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pkb.cli.terminal import speed_up

if TYPE_CHECKING:
    from pkb.record import Record


class Watch(Protocol):
    def step(self, stem: str, step: str) -> None:
        """A judgement has come to its next phase."""

    def done(self, record: "Record") -> None:
        """A judgement has ended."""


@contextmanager
def watched(total: int, quiet: bool) -> Iterator[Watch]:
    if quiet:
        yield _Silent()
    elif not sys.stdout.isatty():
        yield _Lines()
    else:
        columns = (
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=Console(), transient=True) as bar:
            yield _Bar(bar, total)


class _Silent:
    def step(self, stem: str, step: str) -> None:
        pass

    def done(self, record: "Record") -> None:
        pass


class _Lines(_Silent):
    def done(self, record: "Record") -> None:
        seconds = sum(record.seconds.values())
        speed = f"  {speed_up(record)}" if record.timing else ""
        name = record.candidate["name"]
        print(f"{record.problem}  {name}  {record.verdict}{speed}  {seconds:.1f} s  {record.reason}", flush=True)


class _Bar(_Silent):
    def __init__(self, bar: Progress, total: int):
        self.bar = bar
        self.task = bar.add_task("starting ranks", total=total)

    def step(self, stem: str, step: str) -> None:
        self.bar.update(self.task, description=f"{stem}: {step}")

    def done(self, record: "Record") -> None:
        self.bar.advance(self.task)
