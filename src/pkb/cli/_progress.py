"""How verbs report on work that takes long: JSON lines, plain lines in a pipe, or lines above a live status."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

_REFRESHES_PER_SECOND = 4


class Display:
    """Plain lines, for a pipe."""

    is_live = False
    """Whether a status is shown below the lines."""
    render_status: Callable[[], RenderableType] = Text
    """Called to refresh the status, where one is shown."""

    def report(self, line: str, fields: Callable[[], Mapping[str, Any]]) -> None:
        """Show that a piece of work is finished: the line for people, the fields for programs."""
        print(line, flush=True)


class _JsonDisplay(Display):
    def report(self, line: str, fields: Callable[[], Mapping[str, Any]]) -> None:
        print(json.dumps(fields()), flush=True)


class _TerminalDisplay(Display):
    is_live = True

    def __init__(self) -> None:
        self.console = Console()

    def report(self, line: str, fields: Callable[[], Mapping[str, Any]]) -> None:
        self.console.print(Text(line))


@contextmanager
def open_display(as_json: bool) -> Iterator[Display]:
    """Yield the display that --json and stdout ask for."""
    if as_json:
        yield _JsonDisplay()
    elif not sys.stdout.isatty():
        yield Display()
    else:
        display = _TerminalDisplay()
        with Live(
            get_renderable=lambda: display.render_status(),
            console=display.console,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
        ):
            yield display


class Bar:
    """A progress bar with a description of the current step."""

    def __init__(self, total: int, description: str):
        columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, TextColumn("{task.description}", markup=False))
        self._task = self._progress.add_task(description, total=total)

    def describe(self, step: str) -> None:
        self._progress.update(self._task, description=step)

    def advance(self) -> None:
        self._progress.advance(self._task)

    def render(self) -> RenderableType:
        return self._progress.get_renderable()
