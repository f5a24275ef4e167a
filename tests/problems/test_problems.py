"""Every problem: its reference is right, its shown source stands alone, its facts hold together."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pkb.base.pytree import iterate_tensors
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.problem import Problem
from pkb.problems.suite import list_problems
from pkb.record import Verdict
from pkb.settings import ProblemSettings

ALL = list_problems()
stem = lambda problem: problem.stem  # noqa: E731
GPU_BYTES = 80e9


@pytest.fixture
def prompt_judge(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Return a judge that delays no rank: a reference that judges itself cannot race."""
    monkeypatch.setattr(judge.platform, "longest_delay_s", 0.0)
    return judge


def list_settings(problem: Problem) -> list[tuple[int, str, int]]:
    """Return world, dtype and trials of the judgements: both world sizes for every problem.

    Problems vary from trial to trial in form, not in rounding: all five trials in one dtype are enough. In bfloat16 the
    reference is computed, and a right variant of it judged, in all five trials by tests/tools/test_strength.py.
    """
    return [(4, "float32", 5), (2, "float16", 1)]


JUDGEMENTS = [
    pytest.param(problem, *settings, id=f"{problem.stem}-{settings[0]}-{settings[1]}")
    for problem in ALL
    for settings in list_settings(problem)
]


@pytest.mark.parametrize(("problem", "world", "dtype", "trials"), JUDGEMENTS)
def test_reference_is_its_own_correct_candidate(
    prompt_judge: Judge, problem: Problem, world: int, dtype: str, trials: int
) -> None:
    judge = prompt_judge
    setup = judge.pose(problem, ProblemSettings(nproc=world, dtype=dtype, trials=trials))
    record = judge.judge(setup, Candidate.reference(problem))
    assert record.verdict is Verdict.CORRECT, (record.reason, record.evidence)


@pytest.mark.parametrize("world", [2, 4])
def test_shown_sources_run_with_torch_alone(world: int, tmp_path: Path) -> None:
    script = Path(__file__).parent / "run_shown.py"
    command = [sys.executable, str(script), str(tmp_path / "store"), str(world)]
    ranks = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(world)
    ]
    outputs = [rank.communicate(timeout=240)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world, "\n".join(outputs)


@pytest.mark.parametrize("problem", ALL, ids=stem)
def test_shown_source_holds_the_solution_and_nothing_of_ours(problem: Problem) -> None:
    tree = ast.parse(problem.show_source())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert "solution" in names
    assert not names & {"inputs", "cost", "select_outputs"}
    assert "pkb" not in problem.show_source()


@pytest.mark.parametrize("size", ["tiny", "paper", "large"])
@pytest.mark.parametrize("problem", ALL, ids=stem)
def test_costs_are_finite_and_fit_a_gpu(problem: Problem, size: str) -> None:
    for world in problem.list_worlds(size):
        for rank in range(world):
            cost = problem.cost(problem.case(size, "float32", world, rank))
            # Alone, a rank may have nothing to do but hand its arguments back.
            assert cost.hbm > 0 or world == 1
            assert cost.hbm < GPU_BYTES
            assert cost.flops >= 0
            assert min(cost.link.egress, cost.link.ingress) >= 0
            if world == 1:
                assert cost.link.egress == cost.link.ingress == 0


@pytest.mark.parametrize("problem", ALL, ids=stem)
def test_inputs_are_random_per_rank_and_seeded(problem: Problem) -> None:
    def flat(rank: int, seed: int) -> torch.Tensor:
        case = problem.case("tiny", "float32", 4, rank, seed=seed, shared_seed=seed + 100)
        return torch.cat([t.double().reshape(-1) for t in iterate_tensors(problem.inputs(case))])

    assert flat(1, 5).equal(flat(1, 5))
    assert not flat(1, 5).equal(flat(1, 6))
