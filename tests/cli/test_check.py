"""`pkb check` as a person uses it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = str(ROOT / "solutions" / "triton" / "1_allreduce_triton.py")
FORKS = "import os\n\ndef solution(x):\n    os.fork()\n    return x\n"


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pkb", "check", *arguments], capture_output=True, text=True, timeout=60
    )


@pytest.fixture
def forks(tmp_path: Path) -> str:
    path = tmp_path / "forks.py"
    path.write_text(FORKS)
    return str(path)


def test_findings_have_file_line_and_rule(forks: str) -> None:
    ran = check(KERNEL, forks, "--track", "scratch")
    assert ran.returncode == 1
    assert ran.stdout.splitlines() == [
        f"{forks}:4: reject starts-processes: os.fork starts another process; do the work in this process",
        "2 checked for the track scratch: 0 warn, 1 reject",
    ]
    assert check(KERNEL, "--track", "scratch").returncode == 0


def test_json_and_the_claimed_backend(forks: str) -> None:
    findings = [json.loads(line) for line in check(forks, "--backend", "triton", "--json").stdout.splitlines()]
    assert [(f["rule"], f["severity"], f["line"]) for f in findings] == [
        ("no-kernel", "warn", 1),
        ("starts-processes", "reject", 4),
    ]
    assert findings[1]["file"] == forks


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name the files to check, or --rules"),
        (["/no/such.py"], "cannot read /no/such.py: No such file or directory"),
        ([KERNEL, "--track", "pure"], "unknown track 'pure'; choose from any, scratch"),
        ([KERNEL, "--backend", "fortran"], "unknown backend 'fortran'"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(arguments: list[str], says: str) -> None:
    ran = check(*arguments)
    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_a_broken_file_is_not_passed(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def solution(x:\n")
    ran = check(str(broken))
    assert ran.returncode == 1
    assert f"{broken}: cannot be parsed: " in ran.stderr


def test_torch_is_not_imported() -> None:
    script = "import sys; from pkb.cli import main\ntry: main()\nexcept SystemExit: print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script, "check", KERNEL], capture_output=True, text=True, timeout=60)
    assert ran.stdout.splitlines()[-1] == "False"


def test_the_page_of_rules_is_current() -> None:
    page = (ROOT / "docs" / "screen.md").read_text()
    assert check("--rules", "--markdown").stdout == page, "run: pkb check --rules --markdown > docs/screen.md"
