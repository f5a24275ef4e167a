"""docs/adding-an-engine.md, followed to the letter: its engine is found by name, judges, and can be closed."""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from pathlib import Path

import psutil
import pytest

import pkb.engine
from pkb.candidate import Candidate
from pkb.engine import Job, Phase, Site, list_engines, make_engine
from pkb.errors import UsageError
from pkb.problems.suite import load_problem
from pkb.record import Record, Verdict
from pkb.settings import ProblemSettings

PAGE = Path(__file__).parents[2] / "docs" / "adding-an-engine.md"
RIGHT = b"""
import torch.distributed as dist

def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total
"""
ENDLESS = b"def solution(tensor):\n    while True: pass\n"


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder for PKB_PLUGINS with the page's engine."""
    (source,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "engines").mkdir()
    (tmp_path / "engines" / "process.py").write_text(source)
    return tmp_path


@pytest.fixture
def process_engine(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page's engine as this process knows it, which was started without PKB_PLUGINS."""
    monkeypatch.setattr(pkb.engine, "__path__", [*pkb.engine.__path__, str(plugins / "engines")])
    monkeypatch.delitem(sys.modules, "pkb.engine.process", raising=False)
    return "process"


def make_job(source: bytes, out: Path | None = None) -> Job:
    return Job.of(load_problem("allreduce"), Candidate.of(source), ProblemSettings(2, trials=1), out=out)


def list_children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def test_a_job_is_judged_in_another_process(process_engine: str, tmp_path: Path) -> None:
    engine, phases = make_engine(process_engine, Site("cpu")), list[Phase]()
    record = engine.submit(make_job(RIGHT, tmp_path / "sample"), phases.append).result()
    engine.close()
    assert record.verdict is Verdict.CORRECT
    assert record.problem == "1_allreduce"
    assert phases == [Phase.JUDGING]
    assert Record.from_json((tmp_path / "sample" / "record.json").read_text()) == record


def test_closing_it_leaves_no_process_and_no_record(process_engine: str) -> None:
    engine, before = make_engine(process_engine, Site("cpu")), list_children()
    begun, waiting = engine.submit(make_job(ENDLESS)), engine.submit(make_job(RIGHT))
    while len(family := list_children() - before) < 3:
        assert not begun.done(), begun.exception()
        time.sleep(0.05)
    engine.close()
    assert "ended with code -9" in str(begun.exception())
    with pytest.raises(CancelledError):
        waiting.result()
    assert not psutil.wait_procs(family, timeout=10)[1]


def test_the_command_line_finds_it_by_name(plugins: Path) -> None:
    environment = {**os.environ, "PKB_PLUGINS": str(plugins), "COLUMNS": "200"}
    words = [sys.executable, "-m", "pkb", "generate", "--help"]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert "The engine that judges: local or process." in " ".join(ran.stdout.replace("│", " ").split())


def test_an_engine_that_cannot_be_loaded_is_named(process_engine: str, plugins: Path) -> None:
    file = plugins / "engines" / "broken.py"
    file.write_text("import no_such_module\n")
    assert list_engines() == ["broken", "local", "process"]
    with pytest.raises(UsageError, match=rf"{file} cannot be loaded: ModuleNotFoundError.*it must define ENGINE"):
        make_engine("broken", Site())
