"""Weak models are found out, strong ones are not."""

from pathlib import Path

import pytest

from pkb.judge.judge import Judge
from pkb.problems.suite import Suite, load_file
from pkb.settings import ProblemSettings
from pkb.tools.lint import LintFinding, lint

MODELS = Path(__file__).parents[1] / "models"
WEAK = '''"""Adds a bias that is lost, to one of two arguments."""

import torch
import torch.nn as nn

from pkb import ModelProblem


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))
        self.first = nn.Linear(size, size)

    def forward(self, x, y):
        return torch.relu(torch.softmax(self.first(x), 1)) + 0.0 * (self.bias + y)


size = 6


def get_inputs():
    return [torch.rand(4, size), torch.rand(4, size)]


def get_init_inputs():
    return [size]


PROBLEM = ModelProblem(tiny={"size": 5}, hidden={"size": 7})
'''


def found(judge: Judge, source: str, folder: Path) -> dict[str, LintFinding]:
    path = folder / "1_weak.py"
    path.write_text(source)
    return {finding.variant: finding for finding in lint(judge, judge.pose(load_file(path), ProblemSettings(trials=2)))}


@pytest.mark.parametrize("problem", Suite(MODELS).problems(), ids=lambda p: p.stem)
def test_the_tests_own_models_are_strong(judge: Judge, problem: object) -> None:
    findings = list(lint(judge, judge.pose(problem, ProblemSettings(trials=2))))  # type: ignore[arg-type]
    assert [finding for finding in findings if finding.is_bad] == []
    assert [finding.variant for finding in findings if finding.outcome == "passed"] == ["other-library"]


def test_what_does_not_show_survives(judge: Judge, tmp_path: Path) -> None:
    findings = found(judge, WEAK, tmp_path)
    bad = {name for name, finding in findings.items() if finding.is_bad}
    assert {"ignore bias", "ignore y"} <= bad
    assert {name.rpartition(" ")[0] for name in bad if name.startswith("skip")} == {"skip relu", "skip add"}
    assert {"zeros", "constant", "previous-output", "one-element", "ignore x", "ignore first.weight"}.isdisjoint(bad)


def test_reasons_excuse(judge: Judge, tmp_path: Path) -> None:
    excused = (
        WEAK + 'EQUIVALENT = {"ignore bias": "times 0", "ignore y": "times 0", "skip relu": "of positive values"}\n'
    )
    findings = found(judge, excused, tmp_path)
    assert findings["ignore bias"].outcome == "equivalent"
    assert {f.detail for name, f in findings.items() if name.startswith("skip relu")} == {"of positive values"}


def test_constant_functions_are_told_apart(judge: Judge, tmp_path: Path) -> None:
    constant = WEAK.replace("torch.relu(torch.softmax(self.first(x), 1))", "0.0 * self.first(x)")
    degenerate = constant.replace('hidden={"size": 7}', 'hidden={"size": 7}, degenerate="times 0"')
    findings = found(judge, degenerate, tmp_path)
    assert findings["zeros"].outcome == findings["ignore x"].outcome == "degenerate"
    assert not any(finding.is_bad for finding in findings.values())
