"""A published pkb: the wheel is built from the sdist, and installed where no checkout is.

Its kernels lie outside the package: prompts find them, and candidates do not.
"""

import json
import os
import shutil
import site
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

import pkb
from helpers.own_files import LIBRARIES, list_found, make_search

ROOT = Path(__file__).parents[1]
JUDGE = """
import sys
from pathlib import Path
import pkb
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.settings import JudgementSettings, ProblemSettings
assert Path(pkb.__file__).is_relative_to(sys.prefix), pkb.__file__
with Judge("cpu") as judge:
    posed = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    candidate = Candidate.of(Path(sys.argv[1]).read_bytes())
    record = judge.judge(posed, candidate, JudgementSettings(screen=False))
print(record.environment.sandbox.level, record.evidence.message or record.reason)
"""
HATCHLING = [sys.executable, "-m", "hatchling", "build"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an sdist of this checkout, and of a wheel that was built from the unpacked sdist."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run(*HATCHLING, "-t", "sdist", "-d", str(folder), cwd=ROOT)
    with tarfile.open(folder / f"parallelkernelbench-{pkb.__version__}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    run(*HATCHLING, "-t", "wheel", "-d", str(folder), cwd=folder / f"parallelkernelbench-{pkb.__version__}")
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an environment with pkb from the wheel, and everything else from this environment."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--python", str(folder / "bin" / "python"), "install", "--no-deps", str(wheel))
    (packages,) = folder.glob("lib/python*/site-packages")
    # A line of a .pth file is only searched: the link to this checkout is in a .pth file there, and is not followed.
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder


def run(*command: str, cwd: Path = Path("/")) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def list_files(folder: str) -> set[str]:
    """Return the files below a folder of the checkout that belong to the project."""
    paths = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(ROOT)) for path in paths}


def test_the_first_commands_work_away_from_the_checkout(installed: Path) -> None:
    program = str(installed / "bin" / "pkb")
    help_text = run(program)
    assert "eval" in help_text
    assert "redteam" in help_text
    assert run(program, "--version") == f"pkb {pkb.__version__}\n"
    record = json.loads(run(program, "eval", "1", "--candidate", "reference", "--nproc", "2", "--json"))
    assert record["verdict"] == "CORRECT"
    assert record["environment"]["pkb"] == pkb.__version__
    assert "def solution" in run(program, "prompt", "13")
    assert "--kernels" in run(program, "redteam", "--help")


def test_the_wheel_states_who_what_and_for_whom(wheel: Path) -> None:
    facts = read_metadata(wheel)
    assert facts["Version"] == pkb.__version__
    assert facts["Author"] == "The ParallelKernelBench developers"
    assert facts["License-Expression"] == "MIT"
    assert facts["Requires-Python"] == ">=3.11"
    assert len(facts["Keywords"].split(",")) >= 5
    assert "Typing :: Typed" in facts.get_all("Classifier", [])
    # The project has no address yet, and an invented one would lead somewhere else.
    assert facts["Project-URL"] is None
    needed = {line.split(";")[0] for line in facts.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert needed == {"torch>=2.9", "numpy", "typer", "rich", "triton"}


def read_metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


def test_the_sdist_has_what_a_release_is_tested_with(built: Path) -> None:
    folder = built / f"parallelkernelbench-{pkb.__version__}"
    assert {"CHANGELOG.md", "CITATION.cff", "LICENSE", "Makefile", "SECURITY.md"} <= {*os.listdir(folder)}
    for name in ("redteam", "solutions", "tests"):
        assert {path for path in list_files(name) if not (folder / path).is_file()} == set()


def test_what_docker_copies_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    shown = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for name in shown:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    run(*HATCHLING, "-t", "wheel", "-d", str(tmp_path / "dist"), cwd=tmp_path)
    (other,) = (tmp_path / "dist").glob("*.whl")
    assert read_digests(other) == read_digests(wheel)


def read_digests(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def test_prompts_find_the_shipped_kernels(installed: Path) -> None:
    text = run(str(installed / "bin" / "pkb"), "prompt", "8", "--backend", "triton", "--examples", "few")
    assert text.count("@triton.jit") >= 3


def test_kernels_and_attempts_are_shipped_where_nothing_imports_them(installed: Path) -> None:
    for name in ("redteam", "solutions"):
        shipped = {str(path.relative_to(installed / "share" / "pkb")) for path in (installed / "share").rglob("*.*")}
        assert list_files(name) <= shipped
        assert not [*installed.glob(f"lib/python*/site-packages/**/{name}")]
    found = "from importlib.util import find_spec as find; print(find('solutions'), find('redteam'))"
    assert run(str(installed / "bin" / "python"), "-c", found) == "None None\n"


def test_the_wheel_says_that_it_is_typed(installed: Path) -> None:
    assert [*installed.glob("lib/python*/site-packages/pkb/py.typed")]


def test_a_candidate_reads_three_libraries_and_nothing_else(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "search.py").write_bytes(make_search(str(installed / "share")))
    answer = run(str(installed / "bin" / "python"), "-c", JUDGE, str(tmp_path / "search.py"))
    level, _, message = answer.partition(" ")
    if level not in ("namespaces", "bubblewrap", "landlock"):
        pytest.skip(f"files are open at the level {level}")
    assert list_found(message) == LIBRARIES
