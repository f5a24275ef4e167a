"""Problems that are read without torch say the same as problems that are loaded."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pkb.problems.declaration import read_declaration
from pkb.problems.problem import Problem
from pkb.problems.suite import Suite, find_suite, load_file, load_problem
from pkb.protocol.sent_inputs import DrawnArguments, draw_arguments
from pkb.rank.call import Call

SUITES = ("parallel", "kernelbench")
WITHOUT_TORCH = """
import sys
from pkb.problems.suite import find_suite
problems = find_suite("parallel").read_problems()
costs = [problem.rank_costs("paper", "bfloat16", problem.list_worlds("paper")[-1]) for problem in problems]
models = find_suite("kernelbench").read_problems()
print(len(costs), len(models), "torch" in sys.modules)
"""
BY_CONDITION = """
from pkb import Problem, Size

if True:
    PROBLEM = Problem(category="Mine", source="here", sizes={"tiny": Size(2, 2)})
"""


def facts(problem: Problem) -> dict[str, Any]:
    names = ("stem", "category", "title", "source", "sizes", "degenerate", "exact", "mutates", "may_overwrite")
    return {name: getattr(problem, name) for name in names} | {"requires": [*problem.requires]}


@pytest.mark.parametrize("suite", SUITES)
def test_what_is_read_is_what_is_loaded(suite: str) -> None:
    known = find_suite(suite)
    for read, loaded in zip(known.read_problems(), known.problems(), strict=True):
        assert facts(read) == facts(loaded)
        assert read.list_worlds() == loaded.list_worlds()
        assert read.show_source() == loaded.show_source()


def test_costs_need_no_case() -> None:
    suite = find_suite("parallel")
    for read, loaded in zip(suite.read_problems(), suite.problems(), strict=True):
        for size in read.sizes:
            world = read.list_worlds(size)[-1]
            costs = [loaded.cost(loaded.case(size, "bfloat16", world, rank)) for rank in range(world)]
            assert read.rank_costs(size, "bfloat16", world) == costs, read.stem


def test_no_shipped_problem_needs_torch_to_be_read() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "87 270 False\n", ran.stderr


def test_a_file_that_must_be_run_is_run(tmp_path: Path) -> None:
    path = tmp_path / "7_mine.py"
    path.write_text(BY_CONDITION)
    assert read_declaration(path) is None
    (problem,) = Suite(tmp_path).read_problems()
    assert problem is load_file(path.resolve())


def test_inputs_are_drawn_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, before = load_problem(63), torch.get_num_threads()
    draw, seen = problem.module.inputs, []
    monkeypatch.setattr(problem.module, "inputs", lambda case: (seen.append(torch.get_num_threads()), draw(case))[1])
    problem.inputs(problem.case("tiny", "float32", 2))
    assert (seen, torch.get_num_threads()) == ([1], before)


def test_what_was_sent_is_not_drawn_again_to_see_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load_problem(1)
    case = problem.case("tiny", "float32", 2)
    call = Call.draw(problem, case, sent=DrawnArguments.take_apart(draw_arguments(problem, case)))
    monkeypatch.setattr(problem.module, "inputs", lambda case: pytest.fail("drawn again"))
    assert call.describe_result(torch.zeros(1), [], []).changed == []
    call.args[0].add_(1)
    assert call.describe_result(torch.zeros(1), [], []).changed == [problem.arguments[0]]
