"""What is printed about candidates: their own words stay words."""

import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from helpers.made_records import record, timed_record
from pkb.cli import _terminal
from pkb.cli._progress import _TerminalDisplay
from pkb.record import CandidateFacts, Environment, Record, Verdict

ROOT = Path(__file__).parents[2]
MARKUP = r"[bold red]CORRECT[/] \[link=file:///x]y[/link] :smile: \\[b]z"


def render(one: Record, width: int) -> str:
    """Return what a terminal of this width shows of a record, without colours."""
    display, shown = _TerminalDisplay(), io.StringIO()
    display.console = Console(file=shown, width=width)
    display.report(_terminal.format_record(one), one.to_fields, _terminal.format_details(one))
    return shown.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 240])
def test_the_verdict_comes_first_and_the_reason_below_it_at_any_width(width: int) -> None:
    reason = "rank 0, trial 0: 64 of 128 elements differ " * 3 + "CORRECT  1_allreduce  0.1 s"
    one = timed_record(2.0, problem="L2_22_Matmul_Scale_ResidualAdd_Clamp_LogSumExp_Mish", reason=reason)
    lines = render(replace(one, verdict=Verdict.WRONG, candidate=CandidateFacts("x" * 50, "triton", "ab")), width)
    assert max(map(len, lines.splitlines())) <= width
    first, *rest = lines.splitlines()
    assert first.startswith("WRONG")
    assert "".join(lines.split()).count("".join(reason.split())) == 1, "nothing is cut off"
    assert all(line.startswith("  ") for line in rest)
    assert [line[2:12] for line in rest if not line.startswith("    ")] == ["rank 0, tr", "FASTER: 2.", "compile-de"]


def test_a_name_that_says_no_more_than_problem_and_backend_is_left_out() -> None:
    assert _terminal.format_record(record(name="1_allreduce_triton")) == "CORRECT  1_allreduce  0.0 s"
    kept = _terminal.format_record(record(name="mine", when="2026-11-18T09:30:00+00:00"), kept=True)
    assert kept == "CORRECT  1_allreduce  mine  kept from 2026-11-18 09:30"


def test_times_have_significant_digits_and_say_whose_they_are() -> None:
    one = timed_record(0.0085, environment=Environment("cpu", comparable_times=False))
    lines = _terminal.format_details(one)
    assert lines[1] == ("FASTER: 0.0085x (0.0077-0.0094) as fast as the reference, 11.8 ms against 100 us, CPU times")
    assert lines[2].startswith("compile-default: not timed: no }")


def test_markup_in_a_candidates_words_is_shown_as_it_is() -> None:
    shown = render(record(verdict="WRONG", reason=MARKUP, name="[green]CORRECT[/]"), 300)
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
    assert not any(line.startswith("CORRECT") for line in lines)
