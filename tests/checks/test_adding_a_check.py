"""docs/adding-a-check.md, followed to the letter: judge, nursery and ranks find its check, and it catches a breach."""

import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from pkb.checks import Breach, Check, Observations

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-check.md").read_text()
HONEST = """
import torch
import torch.distributed as dist

def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""
GREEDY = HONEST.replace("    total =", "    torch.set_num_threads(2)\n    total =")


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder for PKB_PLUGINS with the page's check."""
    (source,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "torch_settings.py").write_text(source)
    return tmp_path


def run_eval(plugins: Path, candidate: str, *words: str) -> "subprocess.CompletedProcess[str]":
    (plugins / "kernel.py").write_text(candidate)
    posed = ["--platform", "cpu", "--nproc", "2", "--trials", "1", *words]
    command = [sys.executable, "-m", "pkb", "eval", "1", "--candidate", str(plugins / "kernel.py"), *posed]
    environment = {**os.environ, "PKB_PLUGINS": str(plugins), "COLUMNS": "400"}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def judge(plugins: Path, candidate: str) -> dict[str, Any]:
    ran = run_eval(plugins, candidate, "--json")
    assert ran.stdout, ran.stderr
    record: dict[str, Any] = json.loads(ran.stdout)
    return record


def test_a_breach_is_the_verdict(plugins: Path) -> None:
    record = judge(plugins, GREEDY)
    assert record["verdict"] == "CHEAT"
    assert record["reason"] == "rank 0 changed the number of threads from 1 to 2; leave it as it is"
    assert record["evidence"]["check"] == "torch-settings"
    assert record["evidence"]["rank"] == 0
    assert record["evidence"]["details"] == {"setting": "the number of threads"}


def test_an_honest_candidate_passes(plugins: Path) -> None:
    record = judge(plugins, HONEST)
    assert record["verdict"] == "CORRECT", record["reason"]


def test_reports_that_do_not_fit_are_a_crash(plugins: Path) -> None:
    file = plugins / "checks" / "torch_settings.py"
    file.write_text(file.read_text().replace("report_type = list[Change]", "report_type = dict[str, int]"))
    assert judge(plugins, HONEST)["verdict"] == "CRASH"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module\n", "broken.py cannot be loaded: ModuleNotFoundError"),
        ("from pkb.checks.threads import CHECK\n", "broken.py and threads.py both define a check 'threads'"),
    ],
)
def test_a_check_that_cannot_be_used_is_named(plugins: Path, source: str, message: str) -> None:
    (plugins / "checks" / "broken.py").write_text(source)
    ran = run_eval(plugins, HONEST)
    assert ran.returncode == 2
    assert message in " ".join(ran.stderr.split())


def test_the_page_names_every_member() -> None:
    named = re.findall(r"^\| `(\w+)[(`]", PAGE, re.MULTILINE)
    check = [*Check.__annotations__, *(name for name in vars(Check) if name == "__init__" or not name.startswith("_"))]
    observed = [name for name in vars(Observations) if not name.startswith("_")]
    breach = [field.name for field in fields(Breach)]
    assert named == [*dict.fromkeys(check), *observed, *breach]
