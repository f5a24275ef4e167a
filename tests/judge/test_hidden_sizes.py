"""The hidden size is another one from judgement to judgement, and nobody but the judge can foresee it."""

from dataclasses import replace

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import HIDDEN, Setup
from pkb.problems.size import Size
from pkb.problems.suite import load_problem
from pkb.settings import JudgementSettings, ProblemSettings

SETUP = Setup(load_problem("allreduce"), Size(16, 8), "float32", 2, trials=1)


def draw(secret: bytes, setup: Setup = SETUP) -> list[Size]:
    return [setup.draw_hidden_size(Seeds(secret), judgement).find_size(HIDDEN) for judgement in range(40)]


def test_a_judge_has_a_few_and_another_judge_has_others() -> None:
    few = {bytes([secret]) * 32: {*draw(bytes([secret]) * 32)} for secret in range(8)}
    assert all(len(sizes) == 3 for sizes in few.values())
    assert len(set.union(*few.values())) > 8
    assert not set.union(*few.values()) & {*SETUP.problem.sizes.values()}


def test_models_have_several_too() -> None:
    problem = load_problem("L1/1")
    setup = Setup(problem, problem.size("tiny"), "float32", 1).pose_model(published=False)
    assert len({*draw(b"s" * 32, setup)}) == 3
    shapes = {problem.inputs(problem.case(size))[0].shape for size in problem.list_hidden_sizes()}
    assert len(shapes) == 4


def test_what_two_hidden_sizes_share_is_computed_once(judge: Judge) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    first, second = (
        judge.references.get(replace(setup, hidden=size), judge.pool, judge.seeds)
        for size in setup.list_hidden_sizes()[:2]
    )
    assert first.calls.keys() == second.calls.keys()
    for key, call in first.calls.items():
        same = call.outputs[0].oracle is second.calls[key].outputs[0].oracle
        assert same == (key[0] != HIDDEN)
    assert first.calls[HIDDEN, 0, 0].result.leaves[0].shape != second.calls[HIDDEN, 0, 0].result.leaves[0].shape


def test_a_right_kernel_is_right_at_each_of_them(judge: Judge) -> None:
    posed = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    source = Candidate.reference(posed.problem)
    for _ in range(4):
        record = judge.judge(posed, source, JudgementSettings(screen=False))
        assert record.correct, record.reason


@pytest.mark.parametrize("world", [1, 4])
def test_some_sizes_of_every_kind_of_problem_can_be_computed(judge: Judge, world: int) -> None:
    """All of them were run once, at 1, 2, 4 and 8 ranks; here are problems with the strictest conditions."""
    for name in ("blocked_fp8_quantize", "moe_ep_balanced"):
        setup = replace(judge.pose(name, ProblemSettings(nproc=world, trials=1, calls=1)), extra=(HIDDEN,))
        for size in (setup.list_hidden_sizes()[0], setup.list_hidden_sizes()[-1]):
            assert judge.references.get(replace(setup, hidden=size), judge.pool, judge.seeds).calls
