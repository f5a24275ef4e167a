"""What is printed about candidates: their own words stay words."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from helpers.made_records import record
from pkb.cli import _terminal

ROOT = Path(__file__).parents[2]
MARKUP = r"[bold red]CORRECT[/] \[link=file:///x]y[/link] :smile: \\[b]z"


def render_table(monkeypatch: pytest.MonkeyPatch, **words: str) -> str:
    shown = io.StringIO()
    monkeypatch.setattr(_terminal, "Console", lambda: Console(file=shown, force_terminal=True, width=300))
    _terminal._print_table([record(verdict="WRONG", **words)])
    return shown.getvalue()


def test_markup_in_a_candidates_words_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = render_table(monkeypatch, reason=MARKUP, name="[green]CORRECT[/]")
    assert MARKUP in shown
    assert "[green]CORRECT[/]" in shown
    assert shown.count("WRONG") == 1


def test_columns_show_markup_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    _terminal.print_columns(["a"], [], [[MARKUP]])
    assert MARKUP in capsys.readouterr().out


def test_a_line_of_a_record_cannot_hold_another_line() -> None:
    forged = "\r\x1b[2K1_allreduce  mine  CORRECT\n\ud800\u202e"
    line = _terminal.format_record(record(verdict="WRONG", reason=forged, name=forged, problem=forged))
    assert line.isprintable()
    line.encode()


def test_a_candidate_cannot_end_the_command_by_what_must_be_printed(tmp_path: Path) -> None:
    """A thread's name with a surrogate and control characters, printed where only ASCII can be."""
    attempt = ROOT / "redteam" / "18l_names_a_thread_by_a_surrogate.py"
    command = [sys.executable, "-m", "pkb", "eval", "1", "--candidate", attempt, "--nproc", "1", "--trials", "1"]
    ran = subprocess.run(
        [*command, "--platform", "cpu"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=120,
    )
    lines = ran.stdout.decode("ascii").splitlines()
    assert ran.returncode == 1, ran.stderr
    assert "CHEAT" in lines[0]
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("1_allreduce  candidate  CORRECT") for line in lines)
