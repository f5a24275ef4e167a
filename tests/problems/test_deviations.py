"""Problem files declare how they differ from the published problems, and docs/deviations.md says the same."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.commands import run_pkb
from pkb.base.paths import find_checkout
from pkb.errors import UsageError
from pkb.problems.problem import Problem
from pkb.problems.suite import Suite, find_suite

CHECKOUT = find_checkout() or Path()
STEMS = [*find_suite("parallel").stems]
TRIALS = range(5)
SAME = ["17_rope_allgather"]
"""Problems that are posed exactly as published."""


def describe_form(value: Any) -> Any:
    """Return all of an argument but the values of its tensors."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.dtype, value.is_sparse or value.is_contiguous()
    if isinstance(value, list | tuple):
        return [*map(describe_form, value)]
    return None if isinstance(value, torch.nn.Module) else value


def list_varying_arguments(problem: Problem) -> list[str]:
    """Return the arguments whose form differs between ranks or trials: a published problem's are the same in all."""
    world = max(world for world in (2, 4) if problem.may_be_posed(problem.size("tiny"), world=world))
    forms: dict[str, list[Any]] = {name: [] for name in problem.arguments}
    for trial in TRIALS:
        for rank in range(world):
            seeds = {"seed": 10 * trial + rank, "shared_seed": trial}
            drawn = problem.inputs(problem.case("tiny", "float32", world, rank, trial=trial, **seeds))
            for k, name in enumerate(forms):
                forms[name].append(describe_form(drawn[k]) if k < len(drawn) else "not passed")
    return [name for name, found in forms.items() if any(form != found[0] for form in found)]


@pytest.mark.parametrize("stem", STEMS)
def test_every_argument_that_varies_is_named(stem: str) -> None:
    problem = find_suite("parallel").load(stem)
    declared = " ".join(problem.deviations.values())
    assert [name for name in list_varying_arguments(problem) if f"`{name}`" not in declared] == []


def test_arguments_that_are_named_exist() -> None:
    for problem in find_suite("parallel").problems():
        words = {word for text in problem.deviations.values() for word in text.split("`")[1::2]}
        assert words <= {*problem.arguments}, problem.stem


def test_arguments_that_change_in_place_are_declared_as_results() -> None:
    suite = find_suite("parallel").problems()
    changing = [problem for problem in suite if problem.mutates or problem.may_overwrite]
    assert len(changing) > 3
    for problem in suite:
        judges_less = hasattr(problem.module, "select_outputs")
        assert ("result" in problem.deviations) >= (problem in changing or judges_less), problem.stem


def test_problems_without_a_difference() -> None:
    assert [problem.stem for problem in find_suite("parallel").read_problems() if not problem.deviations] == SAME


def test_the_page_is_what_the_problem_files_declare() -> None:
    spec = importlib.util.spec_from_file_location("deviations", CHECKOUT / "tools/deviations.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = (CHECKOUT / "docs/deviations.md").read_text()
    assert text == tool.write_page(), "run: python tools/deviations.py > docs/deviations.md"


def test_show_prints_them() -> None:
    shown = run_pkb("show", 39).stdout
    assert "differs from the published problem (docs/deviations.md):\n  function: attention is over tokens" in shown
    assert "differs from" not in run_pkb("show", 17).stdout


def test_an_unknown_aspect_is_refused(tmp_path: Path) -> None:
    source = find_suite("parallel").load(39).path.read_text()
    (tmp_path / "39_other.py").write_text(source.replace('"function": (', '"purpose": ('))
    with pytest.raises(UsageError, match=r"39_other.py: the field deviations of PROBLEM cannot be"):
        Suite(tmp_path).load(39)
