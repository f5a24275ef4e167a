"""What only a process of its own can show: how it starts, how signals end it, and what is left of it."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from helpers.made import make_run
from helpers.processes import run_process, start_process
from pkb.problems.suite import load_problem

PKB = [sys.executable, "-m", "pkb"]
KERNEL = Path(__file__).parents[2] / "solutions" / "triton" / "1_allreduce_triton.py"
SPIN = "def solution(tensor):\n    while True: pass\n"
LIGHT = """
import json, sys
from typer.testing import CliRunner
from pkb.cli import app
for words in json.loads(sys.argv[1]):
    ran = CliRunner().invoke(app, words, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    assert "torch" not in sys.modules, words
"""


def test_python_m_pkb_is_the_command() -> None:
    ran = run_process([*PKB, "show", "13", "--json"])
    assert json.loads(ran.stdout)["problem"] == "13_gemm_allreduce", ran.stderr
    ran = run_process([*PKB, "eval", "1", "--candidate", "/no/such/file.py"])
    assert (ran.returncode, ran.stdout) == (2, "")
    reason = "No such file or directory; name a Python file"
    assert ran.stderr == f"pkb: cannot read the candidate /no/such/file.py: {reason}\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    for words in ("list", "list --json"):
        ran = run_process(["bash", "-c", f"set -o pipefail; {' '.join(PKB)} {words} | true"])
        assert (ran.returncode, ran.stderr) == (0, "")


def test_verbs_that_only_read_do_not_import_torch(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["1_allreduce"])
    lines = tmp_path / "records.jsonl"
    words = [
        ["--help"],
        ["eval", "--help"],
        ["list"],
        ["list", "--markdown"],
        ["list", "--suite", "kernelbench"],
        ["show", "77"],
        ["check", str(KERNEL)],
        ["report", str(run)],
        ["export", str(run), "--out", str(lines)],
        ["import", str(lines), "--run", str(tmp_path / "other")],
    ]
    ran = run_process([sys.executable, "-c", LIGHT, json.dumps(words)])
    assert ran.returncode == 0, ran.stderr


@contextmanager
def spinning_judge(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """Start an evaluation; yield it and all its processes once its two ranks spin."""
    candidate = folder / "spin.py"
    candidate.write_text(SPIN)
    command = [*PKB, "eval", "1", "--candidate", str(candidate), "--nproc", "2"]
    with start_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as judge:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            family = psutil.Process(judge.pid).children(recursive=True)
            if sum(_spins(process, judge.pid) for process in family) >= 2:
                yield judge, family
                return
            time.sleep(0.1)
        raise AssertionError("the ranks never started to spin")


def _spins(process: psutil.Process, judge: int) -> bool:
    try:
        return process.ppid() != judge and process.cpu_times().user > 1
    except psutil.NoSuchProcess:
        # A process that only forked the ranks.
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_however_an_evaluation_is_interrupted_no_rank_is_left(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with spinning_judge(tmp_path) as (judge, family):
        judge.send_signal(number)
        _, errors = judge.communicate(timeout=30)
        _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    assert judge.returncode == code
    assert "Traceback" not in errors
    if number is signal.SIGINT:
        assert errors.strip() == "interrupted: 0 of 1 judged, no rank left running"


def test_ctrl_c_on_a_terminal_leaves_the_verdicts_so_far(tmp_path: Path) -> None:
    shown, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    (tmp_path / "1_allreduce_torch.py").write_text(load_problem(1).make_candidate_source())
    (tmp_path / "2_allgather_torch.py").write_text(SPIN)
    command = [*PKB, "eval", "1,2", "--solutions-dir", str(tmp_path), "--backend", "torch", "--nproc", "1"]
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with start_process([*command, "--trials", "1"], stdout=terminal, stderr=terminal, env=env) as judge:
        os.close(terminal)
        seen, interrupted = "", False
        with contextlib.suppress(OSError):
            # Linux says so when the other end of a terminal is closed.
            while piece := os.read(shown, 1 << 12):
                seen += piece.decode(errors="replace")
                if not interrupted and "CORRECT" in seen and "2_allgather: trial 1" in seen:
                    judge.send_signal(signal.SIGINT)
                    interrupted = True
        assert judge.wait(30) == 130
    os.close(shown)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", seen)
    assert re.search(
        r"CORRECT  1_allreduce  [\d.]+ s\n  all 9 results right .*\n    hidden size",
        plain,
    ), plain
    assert "interrupted: 1 of 2 judged, no rank left running" in plain


def test_ctrl_c_while_the_command_is_imported_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    ran = run_process(PKB, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


def test_a_locale_that_knows_only_ascii_is_no_obstacle(tmp_path: Path) -> None:
    """The page, the templates and a problem's source hold other letters."""
    run = make_run(tmp_path / "run", ["1_allreduce"])
    problem = Path(load_problem(1).path).read_text(encoding="utf-8")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "7_mine.py").write_text(problem.replace("Sum all-reduce", "Σ all-reduce"), encoding="utf-8")
    words = [["report", str(run)], ["prompt", "7", "--suite", str(tmp_path / "own")], ["list"], ["eval", "--help"]]
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for each in words:
        ran = run_process([*PKB, *each], env=os.environ | plain)
        assert (ran.returncode, ran.stderr) == (0, ""), each
