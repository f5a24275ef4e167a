"""A person's own problems: docs/adding-a-problem.md, followed to the letter in an empty folder."""

import re
from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.problems.suite import Suite
from pkb.settings import ProblemSettings
from pkb.tools.lint import lint

GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-problem.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    example = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0]
    home = tmp_path / "mine" / "tensor_parallel"
    home.mkdir(parents=True)
    (home / "901_my_linear.py").write_text(example)
    return tmp_path / "mine"


def test_the_guide_s_problem_is_found_judged_and_strong(judge: Judge, folder: Path) -> None:
    (problem,) = Suite(folder).select("all")
    assert (problem.stem, problem.category) == ("901_my_linear", "Tensor Parallel")
    setup = judge.pose(problem, ProblemSettings(nproc=2))
    assert judge.judge(setup, Candidate.reference(problem)).correct
    findings = list(lint(judge, setup))
    assert [finding for finding in findings if finding.is_bad] == []
    assert "not_summed" in {finding.variant for finding in findings}


def test_mistakes_in_a_suite_are_explained(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"files named <number>_<name>.py"):
        Suite(folder / "nowhere")
    (folder / "902_broken.py").write_text("import nothing_of_the_kind\n")
    with pytest.raises(UsageError, match=r"902_broken.py cannot be loaded: ModuleNotFoundError"):
        Suite(folder).load(902)
    (folder / "903_empty.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match="declares no PROBLEM"):
        Suite(folder).load(903)
