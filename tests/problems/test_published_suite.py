"""A checkout of the public ParallelKernelBench as a suite: its references, its own inputs or sound ones."""

import os
import sys
from pathlib import Path

import pytest
import torch

from helpers.commands import check_mistake, run_pkb
from helpers.published import write_checkout
from pkb.base.pytree import iterate_tensors
from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.problems.problem import Problem
from pkb.problems.suite import find_suite, name_suite
from pkb.record import Verdict
from pkb.settings import ProblemSettings

CONSTANT = """
import torch.distributed as dist


def solution(tensor):
    world = dist.get_world_size()
    return tensor.new_full(tensor.shape, world * (world + 1) / 2)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkout(tmp_path_factory.mktemp("checkout"))


def draw(problem: Problem, rank: int, published: bool, world: int = 2, **seeds: int) -> list[torch.Tensor]:
    posed = problem.case("tiny", "float32", world, rank, published=published, **seeds)
    return [*iterate_tensors(problem.inputs(posed))]


@pytest.mark.parametrize("folder", [".", "reference"])
def test_a_checkout_holds_its_references_and_nothing_else(checkout: Path, folder: str) -> None:
    problems = find_suite(str(checkout / folder)).problems()
    assert [problem.stem for problem in problems] == ["1_allreduce", "2_scaled_gather", "3_doubled_sum"]
    assert {problem.category for problem in problems} == {"published"}
    assert [*problems[0].sizes] == ["tiny", "paper"]
    assert (problems[0].size("paper").m, problems[0].size("paper").n) == (1024, 1024)
    assert find_suite(name_suite(problems[1])).load(2).path == problems[1].path


def test_ranks_get_the_reference_and_what_it_imports(checkout: Path) -> None:
    files = find_suite(str(checkout)).load(2).list_files()
    assert sorted(str(file.relative_to(checkout)) for file in files) == [
        *("reference/2_scaled_gather.py", "reference/common/late.py", "reference/common/scaling.py"),
        *("utils/input_output_tensors.py", "utils/shapes.py"),
    ]


def test_a_checkout_leaves_no_module_under_its_own_name(checkout: Path) -> None:
    before = {*sys.modules}
    draw(find_suite(str(checkout)).load(2), 0, published=True)
    assert {name.split(".")[0] for name in {*sys.modules} - before}.isdisjoint({"utils", "reference"})


def test_two_checkouts_do_not_share_modules(checkout: Path, tmp_path: Path) -> None:
    other = write_checkout(tmp_path)
    (other / "utils/shapes.py").write_text("def split_ranks(rows, world):\n    return (7,)\n")
    shapes = [draw(find_suite(str(folder)).load(3), 0, published=True)[0].shape for folder in (checkout, other)]
    assert [list(shape) for shape in shapes] == [[64, 3], [7]]


def test_published_inputs_are_what_the_checkout_draws(checkout: Path) -> None:
    suite = find_suite(str(checkout))
    assert (draw(suite.load(1), 1, published=True, seed=5)[0] == 2).all()
    torch.manual_seed(11 + 100 * 2 + 1 + 1000 * 3)
    expected = torch.randn(128, 128)
    assert torch.equal(draw(suite.load(2), 1, published=True, trial=3)[0], expected)


def test_sound_inputs_follow_the_judges_seeds_and_keep_what_ranks_share(checkout: Path) -> None:
    suite = find_suite(str(checkout))
    (x, factors), (other_x, other_factors) = (draw(suite.load(2), rank, published=False) for rank in (0, 1))
    assert torch.equal(factors, other_factors)
    assert not torch.equal(x, other_x)
    (later, _) = draw(suite.load(2), 0, published=False, shared_seed=9)
    assert not torch.equal(x, later)
    (constant,) = draw(suite.load(1), 0, published=False)
    assert constant.std() > 0.5


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("inputs", ["sound", "published"])
def test_references_are_judged(judge: Judge, checkout: Path, number: int, inputs: str) -> None:
    problem = find_suite(str(checkout)).load(number)
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=2, inputs=inputs))
    record = judge.judge(setup, Candidate.reference(problem))
    assert record.correct, record.reason
    assert record.setup.inputs == inputs


def test_a_constant_answer_passes_only_with_published_inputs(judge: Judge, checkout: Path) -> None:
    verdicts = {}
    for inputs in ("sound", "published"):
        setup = judge.pose(find_suite(str(checkout)).load(1), ProblemSettings(nproc=2, trials=1, inputs=inputs))
        verdicts[inputs] = judge.judge(setup, Candidate.of(CONSTANT.encode())).verdict
    assert verdicts == {"sound": Verdict.WRONG, "published": Verdict.CORRECT}


def test_a_world_that_the_inputs_rule_out_is_refused_with_their_reason(judge: Judge, checkout: Path) -> None:
    with pytest.raises(UsageError, match=r"with 1 ranks at 128 x 128: .* needs an even number of ranks; choose"):
        judge.pose(find_suite(str(checkout)).load(3), ProblemSettings(nproc=1))


def test_a_file_without_a_solution_is_named(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path)
    (checkout / "reference/4_nothing.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match=r"4_nothing.py defines no function or class solution"):
        find_suite(str(checkout)).load(4)


def test_our_own_suite_refuses_published_inputs() -> None:
    check_mistake(
        ["eval", "1", "--candidate", "reference", "--inputs", "published", "--nproc", "1"],
        "1_allreduce draws its own inputs, which are sound: --inputs published is for KernelBench's models and for a",
    )


def test_the_command_line_lists_shows_and_prompts(checkout: Path) -> None:
    assert "3 problems: published 3" in run_pkb("list", "--suite", checkout).stdout
    assert "scale_rows" in run_pkb("show", 2, "--suite", checkout, "--nproc", 2).stdout
    shown = run_pkb("prompt", 2, "--suite", checkout, "--backend", "triton", "--nproc", 2, "--examples", 0)
    assert "`group`: the process group of ranks [0, 1]" in shown.stdout, shown.stderr


@pytest.mark.clock
def test_baselines_of_published_references_beside_ours(checkout: Path) -> None:
    options = ["--published", checkout, "--size", "tiny", "--rigor", "quick", "--nproc", 2]
    ran = run_pkb("baseline", "1-2", *options)
    assert ran.returncode == 0, ran.stdout
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["problem", "verdict", "ours", "us", "published", "us", "ours", "/", "published"] in lines
    first, second = ([line for line in lines if line[:1] == [stem]][-1] for stem in ("1_allreduce", "2_allgather"))
    assert first[1] == "CORRECT"
    assert [float(text) > 0 for text in first[2:4]] == [True, True]
    assert second == ["2_allgather", *["not", "in", "the", "checkout", "-", "-", "-"]]
    check_mistake(["baseline", "2", *map(str, options)], "has none of these references; name a problem that it has")
    options[1] = checkout / "utils"
    check_mistake(["baseline", "1", *map(str, options)], "is no checkout of ParallelKernelBench, which has reference/")


def test_a_path_that_is_written_with_dots_is_the_same_suite(checkout: Path) -> None:
    assert find_suite(os.path.join(checkout, "utils", "..")).load(1).path == checkout / "reference/1_allreduce.py"
