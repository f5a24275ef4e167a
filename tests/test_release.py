"""What a release consists of besides code: one version everywhere, dates, a citation, Python's versions, workflows."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import pkb

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that a workflow tries."""
COMPILE = """
import pathlib, sys, warnings
warnings.simplefilter("error")
for path in map(pathlib.Path, sys.argv[1:]):
    for file in path.rglob("*.py"):
        compile(file.read_bytes(), str(file), "exec")
print(sys.version_info[:2])
"""


def read_workflow(path: Path) -> dict[str, Any]:
    workflow = yaml.safe_load(path.read_text())
    # YAML 1.1 reads the key `on` as true.
    workflow["on"] = workflow.pop(True)
    return workflow


def list_steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def read_releases() -> dict[str, str]:
    """Return the date of each version of the changelog, in its order."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    return dict(re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", line).groups() for line in headings[1:])


def test_the_version_has_one_place() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/pkb/__init__.py"
    assert f'"{pkb.__version__}"' in (ROOT / "src" / "pkb" / "__init__.py").read_text()


def test_the_changelog_has_dates_and_the_newest_version_first() -> None:
    releases = read_releases()
    assert next(iter(releases)) == pkb.__version__
    dates = [date.fromisoformat(text) for text in releases.values()]
    assert dates == sorted(dates, reverse=True)


def test_the_citation_is_of_this_version() -> None:
    """`cffconvert --validate` checks the form; these are the fields that the form requires, and ours."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["version"] == pkb.__version__
    assert str(citation["date-released"]) == read_releases()[pkb.__version__]
    assert citation["license"] == PROJECT["project"]["license"]
    assert [one["name"] for one in citation["authors"]] == [one["name"] for one in PROJECT["project"]["authors"]]


def test_addresses_are_given_only_when_there_are_some() -> None:
    texts = [(ROOT / name).read_text() for name in ("SECURITY.md", "CITATION.cff")]
    assert not [text for text in texts if re.search(r"https?://|\S@\S", text)]
    assert "urls" not in PROJECT["project"]


def test_the_sdist_names_what_git_knows() -> None:
    """Whatever else lies in a checkout is not published: a new file at the top is named in pyproject.toml."""
    known = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if known.returncode:
        pytest.skip("this is no checkout of git")
    included = {*PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]}
    # Hatchling itself includes the rules of git.
    assert {path.split("/")[0] for path in known.stdout.splitlines()} - {".ci", ".gitignore"} == included


def test_no_version_of_python_is_claimed_that_no_workflow_tries() -> None:
    prefix = "Programming Language :: Python :: 3."
    claimed = {line.removeprefix(prefix[:-2]) for line in PROJECT["project"]["classifiers"] if line.startswith(prefix)}
    tried = read_workflow(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["cpu"]["strategy"]["matrix"]["python"]
    assert claimed <= {*tried} == {*VERSIONS}
    assert min(VERSIONS) in PROJECT["project"]["requires-python"]


def find_python(version: str) -> str | None:
    """Return a program of that version, on the PATH or among those of pyenv, whose own entry on the PATH may refuse."""
    found = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    programs = [str(path) for path in found if path]
    return next((one for one in programs if not subprocess.run([one, "-c", ""], capture_output=True).returncode), None)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_source_compiles_without_a_warning(version: str) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} is installed here")
    folders = [str(ROOT / name) for name in ("src", "redteam", "solutions")]
    done = subprocess.run([python, "-c", COMPILE, *folders], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"({version.replace('.', ', ')})"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_targets_that_exist(path: Path) -> None:
    targets = {*re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE), ".venv/.ready"}
    commands = [step["run"] for step in list_steps(read_workflow(path)) if "run" in step]
    called = {word for command in commands for word in re.findall(r"(?:^|&& |\n)make ([^\n&|;]+)", command)}
    assert commands
    assert {target for words in called for target in words.split() if "=" not in target} <= targets


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_need_no_secret_and_pin_actions(path: Path) -> None:
    workflow = read_workflow(path)
    assert not re.search(r"\$\{\{[^}]*secrets", path.read_text())
    # Jobs may read the repository; only the one that publishes may ask for an identity, and only where that is set up.
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 60
        assert "permissions" not in job or job["if"] == "vars.TRUSTED_PUBLISHING == 'true'"
    used = [step["uses"] for step in list_steps(workflow) if "uses" in step]
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", name)] == []


def test_there_are_workflows_for_tests_docs_and_releases() -> None:
    triggers = {path.stem: read_workflow(path)["on"] for path in WORKFLOWS}
    for name in ("tests", "docs"):
        assert {"push", "pull_request"} <= triggers[name].keys()
    assert triggers["release"] == {"push": {"tags": ["v*"]}}
