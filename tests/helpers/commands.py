"""`pkb` in the process of the tests, for all that does not depend on processes and signals."""

from subprocess import CompletedProcess

import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from pkb.cli import app

CONTEXT = typer.Context(TyperCommand("pkb"))
"""Of a verb that is called as a function: nothing was given on a command line."""


def run_pkb(*words: object, **environment: str) -> "CompletedProcess[str]":
    """Run a command line in this process. Return its exit code and what it printed."""
    command = [*map(str, words)]
    ran = CliRunner().invoke(app, command, env=environment, catch_exceptions=False)
    return CompletedProcess(command, ran.exit_code, ran.stdout, ran.stderr)


def check_mistake(words: list[str], says: str) -> None:
    """Check that a command line is refused with one line on stderr, which contains `says`."""
    ran = run_pkb(*words)
    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert not ran.stdout
