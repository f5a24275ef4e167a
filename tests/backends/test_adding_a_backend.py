"""docs/adding-a-backend.md, followed to the letter: its backend is recognised, judges, and has a prompt."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import pkb.backends
from pkb.backends import Backend, find_backend, load_backends
from pkb.errors import UsageError
from pkb.generate.prompt import KernelRequest, write_prompt
from pkb.problems.suite import load_problem
from pkb.screen import screen

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-backend.md").read_text()
CANDIDATE = b"""
import torch
import torch.distributed as dist

@torch.jit.script
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor

def solution(tensor):
    total = scale(tensor, 1.0)
    dist.all_reduce(total)
    return total
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder for PKB_PLUGINS with the page's backend."""
    (source,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends" / "torchscript.py").write_text(source)
    return tmp_path


@pytest.fixture
def torchscript(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page's backend as this process knows it, which was started without PKB_PLUGINS."""
    monkeypatch.setattr(pkb.backends, "__path__", [*pkb.backends.__path__, str(plugins / "backends")])
    monkeypatch.delitem(sys.modules, "pkb.backends.torchscript", raising=False)
    load_backends.cache_clear()
    yield "torchscript"
    load_backends.cache_clear()


def run_pkb(plugins: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PKB_PLUGINS": str(plugins), "COLUMNS": "200"}
    return subprocess.run([sys.executable, "-m", "pkb", *words], env=environment, capture_output=True, text=True)


def test_its_candidates_are_recognised_and_judged(plugins: Path) -> None:
    # Because of this import, the builder and the ranks ask the backend for what to add to compilations.
    (plugins / "kernel.py").write_bytes(b"from torch.utils.cpp_extension import load_inline\n" + CANDIDATE)
    posed = ["--platform", "cpu", "--nproc", "2", "--trials", "1", "--json"]
    ran = run_pkb(plugins, "eval", "1", "--candidate", str(plugins / "kernel.py"), *posed)
    record = json.loads(ran.stdout)
    assert record["verdict"] == "CORRECT", record["reason"]
    assert record["candidate"]["backend"] == "torchscript"
    assert record["warnings"] == []


def test_the_screen_expects_its_kernels(torchscript: str) -> None:
    backend = find_backend(torchscript)
    without = CANDIDATE.replace(b"@torch.jit.script\n", b"")
    unused = CANDIDATE.replace(b"scale(tensor, 1.0)", b"tensor.clone()")
    assert {finding.rule for finding in screen(without, backend)} == {"no-kernel"}
    assert {finding.rule for finding in screen(unused, backend)} == {"no-kernel", "never-launched"}


@pytest.mark.parametrize("problem", ["allreduce", "L1/19"])
def test_prompts_have_a_general_text_for_it(torchscript: str, problem: str) -> None:
    text = write_prompt(load_problem(problem), KernelRequest(torchscript, hardware=None, size="tiny"))
    assert "# Writing it in torchscript\n\nWrite kernels of your own" in text


def test_the_command_line_finds_it_by_name(plugins: Path, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_bytes(CANDIDATE)
    assert "torchscript" in run_pkb(plugins, "eval", "--help").stdout
    assert run_pkb(plugins, "check", str(tmp_path / "kernel.py"), "--backend", "torchscript").returncode == 0


def test_a_backend_that_cannot_be_loaded_is_named(torchscript: str, plugins: Path) -> None:
    file = plugins / "backends" / "broken.py"
    file.write_text("import no_such_module\n")
    with pytest.raises(UsageError, match=rf"{file} cannot be loaded: ModuleNotFoundError.*it must define BACKEND"):
        find_backend(torchscript)
    file.write_text("from pkb.backends import Backend\n\nBACKEND = Backend('other')\n")
    with pytest.raises(UsageError, match=r"in broken.py is named 'other'"):
        find_backend(torchscript)


def test_the_page_names_every_member() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [field.name for field in fields(Backend)]
