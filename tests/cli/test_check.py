"""`pkb check` as a user runs it."""

import json
from pathlib import Path

import pytest

from helpers.commands import check_mistake, run_pkb

ROOT = Path(__file__).parents[2]
KERNEL = str(ROOT / "solutions" / "triton" / "1_allreduce_triton.py")
FORKS = "import os\n\ndef solution(x):\n    os.fork()\n    return x\n"


@pytest.fixture
def forks(tmp_path: Path) -> str:
    path = tmp_path / "forks.py"
    path.write_text(FORKS)
    return str(path)


def test_findings_have_file_line_and_rule(forks: str) -> None:
    ran = run_pkb("check", KERNEL, forks, "--track", "scratch")
    assert ran.returncode == 1
    assert ran.stdout.splitlines() == [
        f"{forks}:4: reject starts-processes: os.fork starts another process; do the work in this process",
        "2 checked for the track scratch: 0 warn, 1 reject",
    ]
    assert run_pkb("check", KERNEL, "--track", "scratch").returncode == 0


def test_json_and_the_claimed_backend(forks: str) -> None:
    ran = run_pkb("check", forks, "--backend", "triton", "--json")
    findings = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(f["rule"], f["severity"], f["line"]) for f in findings] == [
        ("no-kernel", "warn", 1),
        ("starts-processes", "reject", 4),
    ]
    assert findings[1]["file"] == forks


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name the files to check, or print the rules with --rules"),
        (["/no/such.py"], "cannot read /no/such.py: No such file or directory"),
        ([KERNEL, "--track", "pure"], "unknown track 'pure'; choose from any, scratch"),
        ([KERNEL, "--backend", "fortran"], "unknown backend 'fortran'"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(words: list[str], says: str) -> None:
    check_mistake(["check", *words], says)


def test_a_broken_file_is_not_passed(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def solution(x:\n")
    ran = run_pkb("check", broken)
    assert ran.returncode == 1
    assert f"{broken}: cannot be parsed: " in ran.stderr


def test_the_page_of_rules_is_current() -> None:
    page = (ROOT / "docs" / "screen.md").read_text()
    shown = run_pkb("check", "--rules", "--markdown").stdout
    assert shown == page, "run: pkb check --rules --markdown > docs/screen.md"
