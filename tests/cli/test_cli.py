"""The command line as a person uses it: in processes of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

SOLUTIONS = Path(__file__).parents[2] / "solutions" / "triton"
SPIN = "def solution(tensor):\n    while True: pass\n"


def pkb(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pkb", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, **options)  # type: ignore[call-overload]


def test_list_and_show() -> None:
    rows = json.loads(pkb("list", "--json").stdout)
    assert rows[0]["name"] == "allreduce"
    assert rows[0]["sizes"]["tiny"] == [16, 8]
    shown = pkb("show", "13").stdout
    assert "def solution(A_local" in shown
    assert "flops" in shown


def test_to_say_how_to_time_is_to_ask_for_it() -> None:
    ran = pkb("eval", "1", "--candidate", "reference", "--nproc", "1", "--trials", "1", "--rigor", "quick", "--json")
    assert json.loads(ran.stdout)["timing"]["rigor"] == "quick", ran.stderr


def test_lint_prints_a_page_with_a_total() -> None:
    ran = pkb("lint", "1", "--nproc", "2", "--dtype", "float32", "--trials", "1", "--markdown")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "`pkb lint 1 --nproc 2 --dtype float32 --trials 1 --markdown`" in ran.stdout
    head, _, row = (line.strip("| ").split(" | ") for line in ran.stdout.splitlines() if line.startswith("|"))
    found = dict(zip(head, row, strict=True))
    assert (found["problem"], found["survived"], found["right"]) == ("1_allreduce", "0", "passed")
    total = f"In all: 1 passed, {found['rejected']} rejected"
    assert ran.stdout.splitlines()[-1].startswith(total)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["eval", "allreduc", "--candidate", "reference"], "did you mean allreduce"),
        (["eval", "L3/12", "--candidate", "reference"], "need --suite kernelbench"),
        (["eval", "L1/1-20", "--candidate", "reference"], "need --suite kernelbench"),
        (["eval", "1", "--candidate", "/no/such/file.py"], "cannot read the candidate /no/such/file.py: No such file"),
        (["eval", "1", "--candidate", "/"], "cannot read the candidate /: Is a directory"),
        (["eval", "17", "--candidate", "reference", "--nproc", "3"], "the 8 heads are a multiple of the world size"),
        (["eval", "1", "--candidate", "reference", "--dtype", "int4"], "unknown dtype 'int4'"),
        (["eval", "1", "--candidate", "reference", "--size", "huge"], "no size 'huge'; choose from tiny, paper, large"),
        (
            ["eval", "1", "--candidate", "reference", "--platform", "tpu"],
            "unknown platform 'tpu'; choose from auto",
        ),
        (["eval", "1", "--candidate", "reference", "--m", "4"], "give --m and --n together"),
        (["lint", "1", "--dtype", "float31"], "unknown dtype 'float31'"),
        (["eval", "1", "--candidate", "reference", "--sandbox", "on"], "choose from auto, require, off"),
        (["eval", "1"], "either --candidate FILE, or --solutions-dir DIR with --backend NAME"),
        (["eval", "9", "--solutions-dir", str(SOLUTIONS), "--backend", "triton"], "problems that have a file there"),
        (["eval", "1", "--candidate", "reference", "--profile"], "say where with --out DIR"),
        (["eval", "1", "--candidate", "reference", "--profile", "ncu"], "use `pkb dryrun PROBLEM"),
        (["dryrun", "1", "--candidate", "reference", "--profile", "ncu"], "use --profile ncu with --nproc 1"),
        (["dryrun", "1", "--candidate", "reference", "--profile=nsys"], "choose from torch, ncu"),
        (["show", "nothing_like_it"], "no problem or category"),
        (["inspect", "/no/such/folder"], "no problem or category"),
        (["list", "--category", "Tensor"], "no category 'Tensor'; there are"),
    ],
)
def test_mistakes_get_one_clear_line(arguments: list[str], says: str) -> None:
    ran = pkb(*arguments)
    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert "Traceback" not in ran.stderr


def test_unknown_options_are_refused_without_a_traceback() -> None:
    ran = pkb("eval", "1", "--candidat", "x")
    assert ran.returncode == 2
    assert "No such option: --candidat" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_eval_writes_records_and_outputs_that_inspect_compares(tmp_path: Path) -> None:
    kernel = SOLUTIONS / "1_allreduce_triton.py"
    ran = pkb("eval", "1", "--candidate", str(kernel), "--nproc", "2", "--trials", "2", "--out", str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1_allreduce_triton  CORRECT" in ran.stdout
    folder = tmp_path / "1_allreduce" / "1_allreduce_triton"
    assert json.loads((folder / "record.json").read_text())["verdict"] == "CORRECT"
    assert "float32[16, 8]" in pkb("inspect", str(folder / "candidate")).stdout
    assert "rank_1" in pkb("inspect", str(folder / "reference"), str(folder / "candidate")).stdout


def test_a_wrong_candidate_means_exit_code_1_and_json_stays_json(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def solution(tensor):\n    return tensor.clone()\n")
    ran = pkb("eval", "1-2", "--candidate", str(wrong), "--nproc", "2", "--trials", "1", "--json")
    assert ran.returncode == 1
    records = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(record["problem"], record["verdict"]) for record in records] == [
        ("1_allreduce", "WRONG"),
        ("2_allgather", "WRONG"),
    ]


def test_options_have_environment_twins() -> None:
    environment = {**os.environ, "PKB_EVAL_NPROC": "2", "PKB_EVAL_TRIALS": "1"}
    ran = pkb("eval", "1", "--candidate", "reference", env=environment)
    assert "1 trials x 3 calls x 2 ranks" in ran.stdout


def test_dryrun_prints_outputs_and_writes_a_trace(tmp_path: Path) -> None:
    ran = pkb("dryrun", "13", "--candidate", "reference", "--nproc", "2", "--profile", "--out", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert "output 0: float32[32, 24]" in ran.stdout
    assert "cpu operators in 3 calls; idle: rank 0 " in ran.stdout
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events if event["name"] == "aten::mm"} == {1, 2}


def test_doctor_judges_something() -> None:
    ran = pkb("doctor")
    assert ran.returncode == 0
    assert "a judgement: 1_allreduce at 2 ranks: CORRECT" in ran.stdout


def started(tmp_path: Path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """An evaluation whose ranks spin, and all its processes."""
    spinning = tmp_path / "spin.py"
    spinning.write_text(SPIN)
    command = [sys.executable, "-m", "pkb", "eval", "1", "--candidate", str(spinning), "--nproc", "2"]
    judge = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        family = psutil.Process(judge.pid).children(recursive=True)
        if sum(_spins(process, judge.pid) for process in family) >= 2:
            return judge, family
        time.sleep(0.1)
    raise AssertionError("the ranks never got to work")


def _spins(process: psutil.Process, judge: int) -> bool:
    try:
        return process.ppid() != judge and process.cpu_times().user > 1
    except psutil.NoSuchProcess:
        # The one that forked the ranks has done its part.
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)])
def test_however_the_judge_ends_no_rank_is_left(tmp_path: Path, number: signal.Signals, code: int) -> None:
    judge, family = started(tmp_path)
    judge.send_signal(number)
    _, errors = judge.communicate(timeout=30)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive
    assert judge.returncode == code
    assert "Traceback" not in errors


def test_the_page_of_problems_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "problems.md"
    assert pkb("list", "--markdown").stdout == page.read_text(), "run: pkb list --markdown > docs/problems.md"


def test_people_s_own_problems_are_taken_from_their_folder(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "src" / "pkb" / "suites" / "parallel" / "collective_primitive"
    (tmp_path / "7_mine.py").write_text((shipped / "1_allreduce.py").read_text())
    ran = pkb("eval", "mine", "--suite", str(tmp_path), "--candidate", "reference", "--nproc", "2", "--trials", "1")
    assert "7_mine  reference  CORRECT" in ran.stdout
    assert pkb("list", "--suite", str(tmp_path / "empty")).returncode == 2
