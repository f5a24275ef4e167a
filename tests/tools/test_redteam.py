"""Every attempt to cheat that we know is caught, by the check that its header names."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers.attempts import ATTEMPTS, ROOT, list_cases
from helpers.commands import run_pkb
from pkb.backends import recognise
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.runs import Run
from pkb.screen import Severity, screen
from pkb.settings import find_track
from pkb.tools.redteam import Attempt, Outcome, list_honest_kernels, read_attempts, stage

ROWS = {*map(str, range(1, 48)), *(f"m{number}" for number in range(1, 15))}
UNSTAGED = {"20", "45", "46", "47"}
"""No verdict of a candidate shows these: docs/redteam.md names the tests that do."""


@pytest.mark.parametrize(("attempt", "screened"), list(list_cases(by_clock=False)))
def test_caught(impatient: Judge, attempt: Attempt, screened: bool) -> None:
    finding = stage(impatient, attempt, screened)
    assert finding.is_caught, f"{finding.outcome}: {finding.reason} {finding.missing_warnings}"


@pytest.mark.parametrize("attempt", [a for a in ATTEMPTS if a.platform == "gpu"], ids=lambda a: a.path.stem)
def test_the_screen_sees_what_needs_a_gpu(attempt: Attempt) -> None:
    source = attempt.path.read_bytes()
    findings = screen(source, recognise(source), find_track(attempt.track))
    assert set(attempt.warns) <= {finding.rule for finding in findings}
    rejected = any(finding.severity is Severity.REJECT for finding in findings)
    assert rejected == any(outcome.verdict == "REJECTED" for outcome in attempt.expect)


def test_every_row_has_an_attempt_and_every_attempt_its_place_on_the_page() -> None:
    assert {attempt.row for attempt in ATTEMPTS} == ROWS - UNSTAGED
    page = (ROOT / "docs" / "redteam.md").read_text()
    assert [a.path.stem for a in ATTEMPTS if f"`{a.path.stem}`" not in page] == []
    assert {row.lower() for row in re.findall(r"^\| (M?\d+) \|", page, re.MULTILINE)} == ROWS


def test_the_threat_model_names_files_that_exist() -> None:
    pages = ("threat-model", "threat-reach", "threat-limits", "redteam")
    page = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in pages)
    named = re.findall(r"`((?:src|tests|tools|redteam|benchmarks)/[\w./]+)(?:::\w+)?`", page)
    assert len(named) > 40
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_names_begin_with_their_row() -> None:
    for attempt in ATTEMPTS:
        assert re.sub(r"^(m?)0*(\d+).*", r"\1\2", attempt.path.stem) == attempt.row


HEADER = """row: 31
tries: nothing
expect: {expect}
"""
HONEST = """
import torch.distributed as dist

def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""


def written(folder: Path, header: str, name: str = "31_honest.py") -> Path:
    path = folder / name
    path.write_text(f'"""{header}"""\n{HONEST}')
    return path


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("row: 31\ntries: x\nexpect: FINE values\n", "'FINE' is no verdict"),
        ("row: 31\ntries: x\nexpects: WRONG values\n", "unknown line 'expects'"),
        ("row: 31\ntries: x\n", "missing 1 required positional argument: 'expect'"),
        ("row: 31\ntries: x\nexpect: WRONG\nnproc: two\n", "invalid literal"),
    ],
)
def test_a_header_with_a_mistake_is_refused(tmp_path: Path, header: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Attempt.read(written(tmp_path, header))


def test_headers_and_outcomes(tmp_path: Path) -> None:
    header = HEADER.format(expect="WRONG values | CHEAT") + "unscreened: CRASH protocol\nwarns: a b\ntimed: yes\n"
    attempt = Attempt.read(written(tmp_path, header))
    assert attempt.expect == (Outcome("WRONG", "values"), Outcome("CHEAT"))
    assert (attempt.list_modes(), attempt.warns, attempt.timed, attempt.nproc) == ([True, False], ("a", "b"), True, 2)
    assert Outcome("CHEAT", "threads").meets(Outcome("CHEAT"))
    assert not Outcome("WRONG", "shape").meets(Outcome("WRONG", "values"))


def test_attempts_are_chosen_by_row_or_name() -> None:
    chosen = [attempt.path.stem for attempt in read_attempts(ROOT / "redteam", ["m3", "05", "19?_exits*"])]
    assert {name[:3] for name in chosen} == {"m03", "05a", "05b", "05c", "19a"}
    with pytest.raises(UsageError, match="no attempt has the row or the name 99"):
        read_attempts(ROOT / "redteam", ["99"])
    with pytest.raises(UsageError, match="--folder"):
        read_attempts(ROOT / "docs")
    with pytest.raises(UsageError, match="--no-kernels"):
        list_honest_kernels(ROOT / "docs")


def redteam(*arguments: str) -> subprocess.CompletedProcess[str]:
    folder = [] if "--folder" in arguments else ["--folder", ROOT / "redteam"]
    return run_pkb("redteam", "--platform", "cpu", *folder, *arguments)


def test_the_command_counts_what_it_caught_and_what_it_should_not_have(tmp_path: Path) -> None:
    shutil.copy(ROOT / "solutions" / "triton" / "2_allgather_triton.py", tmp_path)
    folder = tmp_path / "redteam"
    (folder / "honest").mkdir(parents=True)
    for name in ("31_answers_with_nan.py", "12_works_on_another_stream.py", "honest/requires_grad.py"):
        shutil.copy(ROOT / "redteam" / name, folder / name)
    well = redteam("31", "12", "--folder", str(folder), "--kernels", str(tmp_path), "--out", str(tmp_path / "run"))
    assert well.returncode == 0, well.stdout + well.stderr
    assert "skipped: needs a GPU" in well.stdout
    assert "1 rows, 1 attempts: 1 caught, 0 missed; honest kernels: 3 judged, 0 false alarms" in well.stdout
    assert [sample.name for sample in Run(tmp_path / "run").list_samples()] == ["31_answers_with_nan"]
    (tmp_path / "2_allgather_triton.py").write_text("def solution(tensor):\n    return tensor\n")
    alarmed = redteam("31", "--json", "--folder", str(folder), "--kernels", str(tmp_path))
    assert alarmed.returncode == 1
    assert "FALSE ALARM  2_allgather" in alarmed.stderr
    assert json.loads(alarmed.stdout)["got"] == "WRONG values"


def test_the_command_tells_a_miss(tmp_path: Path) -> None:
    written(tmp_path, HEADER.format(expect="WRONG values"))
    missed = redteam("--folder", str(tmp_path), "--no-kernels")
    assert missed.returncode == 1
    assert "MISSED  CORRECT" in missed.stdout
    assert "expected WRONG values" in missed.stdout
    table = redteam("--folder", str(tmp_path), "--no-kernels", "--markdown").stdout
    assert "| 31 | `31_honest` | nothing | on | **missed:** CORRECT |" in table
