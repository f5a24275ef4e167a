"""How verbs report on work that takes long: JSON lines, plain lines in a pipe, or lines above a live status."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

_REFRESHES_PER_SECOND = 4
_INDENT = "  "
_LEAST_WIDTH = 20
_BAD = ("WRONG", "REJECTED", "BUILD_FAILED", "CRASH", "HANG", "CHEAT")
_COLOURS = {"CORRECT": "bold green", "ENVIRONMENT": "bold yellow", **dict.fromkeys(_BAD, "bold red")}
"""Colours of a line's first word."""


class Display:
    """Plain lines, for a pipe."""

    is_live = False
    """Whether a status is shown below the lines."""
    render_status: Callable[[], RenderableType] = Text
    """Called to refresh the status, where one is shown."""

    def report(self, line: str, fields: Callable[[], Mapping[str, Any]], details: Sequence[str] = ()) -> None:
        """Show that a piece of work is finished: for people a line and details below it, for programs the fields.

        A candidate may have chosen words of the details: they are indented, and so never look like another line.
        """
        print(line, *details, sep=f"\n{_INDENT}", flush=True)


class _JsonDisplay(Display):
    def report(self, line: str, fields: Callable[[], Mapping[str, Any]], details: Sequence[str] = ()) -> None:
        print(json.dumps(fields()), flush=True)


class _TerminalDisplay(Display):
    is_live = True

    def __init__(self) -> None:
        self.console = Console()

    def report(self, line: str, fields: Callable[[], Mapping[str, Any]], details: Sequence[str] = ()) -> None:
        first, space, rest = line.partition(" ")
        lines = self._fold(Text().append(first, _COLOURS.get(first, "")).append(space + rest), "")
        for detail in details:
            lines += self._fold(Text(detail), _INDENT)
        # All at once: in between, the status would be drawn again.
        self.console.print(Text("\n").join(lines), soft_wrap=True)

    def _fold(self, text: Text, indent: str) -> list[Text]:
        """Return a text in the width of the terminal; what is folded stands further to the right than any beginning."""
        width = max(self.console.width - len(2 * _INDENT), _LEAST_WIDTH)
        first, *rest = text.wrap(self.console, width, overflow="fold") or [text]
        lines = [Text(indent) + first, *(Text(2 * _INDENT) + one for one in rest)]
        for line in lines:
            line.rstrip()
        return lines


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
