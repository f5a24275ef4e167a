"""Prompts for models: what they hold, what they never say, and that no example is the answer."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from pkb.backends import load_backends
from pkb.errors import UsageError
from pkb.generate.argument_docs import describe_arguments, describe_constructor
from pkb.generate.examples import choose_examples
from pkb.generate.prompt import KernelRequest, write_prompt
from pkb.generate.template import Template
from pkb.problems.kernelbench import ModelProblem
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.problems.suite import Suite, find_suite, load_problem

EXAMPLES = Path(__file__).parents[2] / "solutions" / "kernelbench" / "examples"
MODELS = [problem.stem for problem in find_suite("kernelbench").read_problems()]
FOREIGN = re.compile(r"\brank|world size|collective|distributed|peers|process group|\blinks?\b", re.IGNORECASE)
"""What has no meaning on one GPU."""
HUGE = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, size: int, bias: bool = False):
        super().__init__()
        self.linear = nn.Linear(size, 8, bias)

    def forward(self, x, mask=None):
        return self.linear(x)

def get_inputs():
    return [torch.rand(1 << 30, 1 << 30)]

def get_init_inputs():
    return [1 << 30]
"""


def model(key: str) -> ModelProblem:
    problem = load_problem(key)
    assert isinstance(problem, ModelProblem)
    return problem


def lines(problem: Problem, size: Size) -> set[str]:
    return {*describe_constructor(problem, size), *describe_arguments(problem, size, "bfloat16", 1)}


@pytest.mark.parametrize("stem", MODELS)
def test_prompts_hold_the_model_and_no_hidden_size(stem: str) -> None:
    if stem.startswith("L4"):
        pytest.importorskip("transformers")
    problem = model(stem)
    text = write_prompt(problem, KernelRequest("triton", hardware=None, track="scratch"))
    assert problem.show_source() in text
    shown, hidden = lines(problem, problem.size("paper")), problem.list_hidden_sizes()[0]
    assert shown <= {*text.splitlines()}
    assert not (lines(problem, hidden) - shown) & {*text.splitlines()}
    hidden_values = {f"{name} = {value!r}" for name, value in (problem.hidden or {}).items()}
    assert not (hidden_values - {*problem.show_source().splitlines()}) & {*text.splitlines()}
    assert not FOREIGN.search(text.replace(problem.show_source(), ""))


@pytest.mark.parametrize("backend", load_backends())
@pytest.mark.parametrize("track", ["any", "scratch"])
def test_no_backend_speaks_of_several_gpus(backend: str, track: str) -> None:
    problem = load_problem("L2/9")
    text = write_prompt(problem, KernelRequest(backend, track=track))
    assert not FOREIGN.search(text.replace(problem.show_source(), ""))
    assert "class ModelNew(nn.Module)" in text
    assert "defines `ModelNew` counts" in text
    assert "solution`" not in text
    assert "One H100. It has\n\n- 132 multiprocessors" in text


@pytest.mark.parametrize(
    ("asked", "count", "names"),
    [
        ("L1/19", 0, []),
        ("L1/19", 1, ["1_add"]),
        ("L1/19", 3, ["2_linear_gelu", "3_matmul", "4_flash_attention"]),
        ("L1/1", 3, ["2_linear_gelu", "4_flash_attention", "1_add"]),
        ("L1/97", 3, ["2_linear_gelu", "3_matmul", "1_add"]),
    ],
)
def test_as_many_examples_as_asked_for(asked: str, count: int, names: list[str]) -> None:
    text = write_prompt(load_problem(asked), KernelRequest("triton", hardware=None, examples=count))
    assert re.findall(r"^## Reference: (.*)$", text, re.MULTILINE) == names
    assert all((EXAMPLES / "triton" / f"{name}_triton.py").read_text() in text for name in names)
    assert "PROBLEM" not in text
    assert "ANSWERS" not in text


@pytest.mark.parametrize("backend", ["cuda", "torch", "parallelkittens"])
def test_backends_without_examples_have_no_such_section(backend: str) -> None:
    assert "# Examples" not in write_prompt(load_problem("L1/19"), KernelRequest(backend, hardware=None, examples=3))


def test_no_example_computes_what_is_asked_for() -> None:
    """The example's model is tried in place of the task's, with the task's arguments."""
    template = Template.load("triton", form="models")
    for stem in (each for each in MODELS if each.startswith(("L1_", "L2_"))):
        problem = model(stem)
        shown = [example.problem for example in choose_examples(template, "triton", problem, 4)]
        assert shown
        assert list_equal(problem, shown) == [], stem


def test_examples_that_are_left_out_are_the_answer() -> None:
    for example in Suite(EXAMPLES / "tasks").problems():
        for key in getattr(example.module, "ANSWERS", []):
            assert list_equal(model(key.replace("_", "/")), [example]) == [example.stem], key


def list_equal(problem: ModelProblem, examples: list[Problem]) -> list[str]:
    """Return the examples whose models compute what the task's does. The task's runs only where some example can."""
    case = problem.case("tiny", seed=5)
    arguments = problem.inputs(case)
    results = {example.stem: run_example(example, problem.load_at("tiny"), arguments) for example in examples}
    if all(result is None for result in results.values()):
        return []
    expected = problem.build(None, case, {"construct": 1})(*arguments)
    return [stem for stem, result in results.items() if result is not None and is_close(result, expected)]


def run_example(example: Problem, task: ModuleType, arguments: tuple[Any, ...]) -> Any:
    """Return what an example's model makes of a task's arguments; None where it cannot take them."""
    try:
        torch.manual_seed(1)
        constructor_arguments = task.get_init_inputs()
        torch.manual_seed(1)
        return example.module.Model(*constructor_arguments)(*arguments)
    except (TypeError, RuntimeError, IndexError, AttributeError):
        return None


def is_close(result: Any, expected: Any) -> bool:
    alike = isinstance(expected, torch.Tensor) and expected.shape == result.shape
    return alike and torch.allclose(expected, result, rtol=1e-3, atol=1e-4)


def test_arguments_in_words() -> None:
    words = lambda key: lines(load_problem(key), load_problem(key).size("paper"))  # noqa: E731
    assert words("L2/9") == {
        *("- `in_features`: int 8192", "- `out_features`: int 8192"),
        *("- `subtract_value`: float 2.0", "- `multiply_value`: float 1.5", "- `x`: bfloat16[1024, 8192]"),
    }
    assert words("L1/5") == {
        *("- nothing", "- `A`: bfloat16[65536, 16384]", "- `s`: varies from call to call, for example float 3.14"),
    }


def test_tasks_of_other_people_are_described_however_large(tmp_path: Path) -> None:
    (tmp_path / "1_huge.py").write_text(HUGE)
    problem = Suite(tmp_path).load("1")
    text = write_prompt(problem, KernelRequest("triton", "fp32", "h100_8"))
    assert HUGE in text
    given = f"- `size`: int {1 << 30}"
    called = f"- `x`: float32[{1 << 30}, {1 << 30}]\n- `mask`: not passed; its default is None"
    assert given in text
    assert called in text


def test_models_are_never_asked_for_with_several_ranks() -> None:
    with pytest.raises(UsageError, match="a model runs on one rank"):
        write_prompt(load_problem("L1/19"), KernelRequest("triton", nproc=4))


def test_people_replace_what_is_said_of_models_too(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('sections = ["task", "answer"]\n[text]\ntask = "Write $entry for $problem at $size."\n')
    text = write_prompt(load_problem("L1/19"), KernelRequest("triton", template=own))
    assert text.startswith("Write ModelNew for L1_19_ReLU at paper.\n\n# Your answer\n")
