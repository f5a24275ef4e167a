"""Exit codes with a meaning of their own, and messages on stderr that several verbs print.

0 means that all went well, 1 that something was found to be wrong.
"""

import sys
from collections.abc import Iterable
from typing import NoReturn

import typer

from pkb.base.printable import clean_line

MISTAKE = 2
"""The command cannot work with its arguments; one line on stderr says what to change."""
INTERRUPTED = 130
"""Ctrl+C: what a shell reports for a process that SIGINT ended."""
_MOST_SKIPPED = 20


def exit_interrupted(state: str) -> NoReturn:
    """End the command after Ctrl+C; `state` says what is finished and what is left."""
    print(f"\ninterrupted: {state}", file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def print_skipped(damaged: Iterable[object]) -> None:
    """Say which files were left out because they cannot be read: the first ones by name, and how many more."""
    found = [*damaged]
    for one in found[:_MOST_SKIPPED]:
        print(clean_line(f"skipped, damaged: {one}"), file=sys.stderr)
    if len(found) > _MOST_SKIPPED:
        print(f"skipped, damaged: {len(found) - _MOST_SKIPPED} more", file=sys.stderr)
