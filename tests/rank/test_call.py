"""Arguments: drawn, sent by the judge, and put where earlier ones were."""

import pytest
import torch

from pkb.base.pytree import iterate_tensors
from pkb.base.tensors import view_bytes
from pkb.judge.setup.drawing import describe_calls
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.problems.case import Case
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.problems.suite import list_problems, load_problem
from pkb.protocol.sent_inputs import VaryingForm, draw_tensors
from pkb.rank.call import Call


def test_worn_memory_holds_new_values() -> None:
    problem = load_problem("gemm_allreduce")
    first, second = (Call.draw(problem, problem.case(seed=seed)) for seed in (1, 2))
    worn = second.reuse_memory(first.args)
    for old, new, value in zip(first.args, worn.args, second.args, strict=True):
        assert new is old
        assert torch.equal(new, value)
        assert new._version == 0
    assert not worn.describe_result(torch.zeros(1), [], []).changed


def test_memory_of_another_shape_is_left_alone() -> None:
    problem = load_problem("gemm_allreduce")
    small, large = (Call.draw(problem, problem.case(size, seed=1)) for size in (problem.hidden_size(), "tiny"))
    worn = large.reuse_memory(small.args)
    assert all(new is value for new, value in zip(worn.args, large.args, strict=True))


def test_there_may_have_been_fewer_arguments_before() -> None:
    problem = load_problem("moe_all2all_primitive")
    few, more = (Call.draw(problem, problem.case(world=2, seed=1, trial=trial)) for trial in (3, 4))
    assert len(few.args) < len(more.reuse_memory(few.args).args) == len(more.args)
    assert len(few.reuse_memory(more.args).args) == len(few.args)


def test_a_probe_keeps_signs_and_range() -> None:
    problem = load_problem("allreduce")
    plain = Call.draw(problem, problem.case(seed=1)).args[0]
    for where in (0.0, 0.3, 0.6, 0.99):
        probed = Call.draw(problem, problem.case(seed=1), bump=(0.0, where)).args[0]
        changed = (plain != probed).nonzero()
        assert len(changed) == 1
        before, after = plain[tuple(changed[0])], probed[tuple(changed[0])]
        assert before.sign() == after.sign()
        assert (after - before).abs() > 0.5
        assert after.abs() <= max(before.abs(), 3 * plain.square().mean().sqrt())


@pytest.mark.parametrize("problem", list_problems(), ids=lambda problem: problem.stem)
def test_what_is_sent_is_what_would_be_drawn(problem: Problem) -> None:
    real, decoy = hidden_cases(problem)
    try:
        sent = draw_tensors(problem, real, decoy)
    except VaryingForm:
        return
    taken, drawn = Call.draw(problem, decoy, sent=sent), Call.draw(problem, real)
    pairs = zip(iterate_tensors(taken.args), iterate_tensors(drawn.args), strict=True)
    assert all(torch.equal(view_bytes(one), view_bytes(other)) for one, other in pairs)
    assert taken.describe_result(torch.zeros(1), [], []).changed == []


def hidden_cases(problem: Problem) -> list[Case]:
    return [problem.case(problem.hidden_size(), seed=seed, shared_seed=seed) for seed in (1, 2)]


def test_most_problems_can_be_sent() -> None:
    formless = []
    for problem in list_problems():
        try:
            draw_tensors(problem, *hidden_cases(problem))
        except VaryingForm:
            formless.append(problem.stem)
    assert len(formless) <= 10, formless


@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_every_rank_is_clearly_late_once(world: int) -> None:
    setup, seeds = Setup(load_problem("1_allreduce"), Size(64, 8), "float32", world), Seeds()
    delays = {
        rank: [
            call.delay
            for trial in setup.checked_trials
            for call in describe_calls(setup, seeds, trial, rank, setup.calls, longest_delay=1.0)
        ]
        for rank in range(world)
    }
    assert [sum(delay >= 0.5 for delay in found) for found in delays.values()] == [int(world > 1)] * world
    late = [sum(delay > 0 for delay in each) for each in zip(*delays.values(), strict=True)]
    assert late == [int(world > 1)] * len(late), "one rank in each call, and no other"


def test_what_a_call_left_does_not_change_later() -> None:
    problem = load_problem("1_allreduce")
    call, output = Call.draw(problem, problem.case()), torch.zeros(4)
    (left,) = call.copy_leaves(output)
    output.fill_(1)
    assert torch.equal(left, torch.zeros(4))
