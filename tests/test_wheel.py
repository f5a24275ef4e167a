"""An installed pkb: its kernels lie outside the package, prompts find them, and candidates do not."""

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an environment with pkb from a wheel, and everything else from this environment."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-w", str(folder))
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"))
    (wheel,) = folder.glob("*.whl")
    run(*pip, "--python", str(folder / "venv" / "bin" / "python"), "install", "--no-deps", str(wheel))
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    # A line of a .pth file is only searched: the link to this checkout is in a .pth file there, and is not followed.
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder / "venv"


def run(*command: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_prompts_find_the_shipped_kernels(installed: Path) -> None:
    text = run(str(installed / "bin" / "pkb"), "prompt", "8", "--backend", "triton", "--examples", "few")
    assert text.count("@triton.jit") >= 3
    assert not [*installed.glob("lib/python*/site-packages/**/solutions")]
    assert (installed / "share" / "pkb" / "solutions" / "triton" / "1_allreduce_triton.py").is_file()


def test_the_wheel_says_that_it_is_typed(installed: Path) -> None:
    assert [*installed.glob("lib/python*/site-packages/pkb/py.typed")]


def test_a_candidate_reads_three_libraries_and_nothing_else(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "search.py").write_bytes(make_search(str(installed / "share")))
    answer = run(str(installed / "bin" / "python"), "-c", JUDGE, str(tmp_path / "search.py"))
    level, _, message = answer.partition(" ")
    if level not in ("namespaces", "bubblewrap", "landlock"):
        pytest.skip(f"files are open at the level {level}")
    assert list_found(message) == LIBRARIES
