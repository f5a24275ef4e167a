"""docs/adding-a-platform.md, followed to the letter: judge, nursery and ranks find its platform and start on it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pkb.platforms import Platform

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-platform.md").read_text()
CANDIDATE = """
import os
import torch.distributed as dist

def solution(tensor):
    assert os.getpriority(os.PRIO_PROCESS, 0) > 9
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder for PKB_PLUGINS with the page's platform."""
    (source,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "polite_cpu.py").write_text(source)
    return tmp_path


def run_pkb(plugins: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PKB_PLUGINS": str(plugins)}
    return subprocess.run([sys.executable, "-m", "pkb", *words], env=environment, capture_output=True, text=True)


def test_ranks_start_on_it(plugins: Path) -> None:
    (plugins / "kernel.py").write_text(CANDIDATE)
    posed = ["--platform", "polite-cpu", "--nproc", "2", "--trials", "1", "--json"]
    ran = run_pkb(plugins, "eval", "1", "--candidate", str(plugins / "kernel.py"), *posed)
    record = json.loads(ran.stdout)
    assert record["verdict"] == "CORRECT", record["reason"]
    assert record["environment"]["platform"] == "polite-cpu"
    assert record["environment"]["cores"] == os.cpu_count()
    assert not record["environment"]["comparable_times"]


def test_a_platform_that_cannot_be_loaded_is_named(plugins: Path) -> None:
    (plugins / "platforms" / "broken.py").write_text("import no_such_module\n")
    ran = run_pkb(plugins, "eval", "1", "--candidate", "reference", "--platform", "polite-cpu")
    assert ran.returncode == 2
    assert "broken.py cannot be loaded: ModuleNotFoundError" in " ".join(ran.stderr.split())


def test_the_page_names_every_member() -> None:
    named = re.findall(r"^\| `(\w+)[(`]", PAGE, re.MULTILINE)
    members = [*Platform.__annotations__, *(name for name in vars(Platform) if not name.startswith("_"))]
    assert named == list(dict.fromkeys(members))
