"""Arguments: drawn, sent by the judge, and put where earlier ones were."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from pkb.base.pytree import iterate_tensors
from pkb.base.tensors import view_bytes
from pkb.judge.setup.drawing import describe_calls
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.problems.suite import list_problems, load_problem
from pkb.protocol.sent_inputs import DrawnArguments
from pkb.rank.call import Call, ResultCopy


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
    small, large = (Call.draw(problem, problem.case(size, seed=1)) for size in (problem.list_hidden_sizes()[0], "tiny"))
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
    """Whatever depends on the seed: values, shapes, numbers, or how arguments are nested."""
    for trial in range(problem.default_trials):
        posed = [
            problem.case(problem.list_hidden_sizes()[0], seed=seed, shared_seed=seed, trial=trial) for seed in (1, 2)
        ]
        drawn = Call.draw(problem, posed[0])
        sent = DrawnArguments.take_apart(drawn.args)
        over_the_wire = DrawnArguments(json.loads(json.dumps(sent.form)), [t.clone() for t in sent.tensors])
        taken = Call.draw(problem, posed[1], sent=over_the_wire)
        assert_same(taken.args, drawn.args)
        assert taken.describe_result(torch.zeros(1), [], []).changed == []


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor) and one.is_sparse:
        assert one.is_coalesced() == other.is_coalesced()
        assert_same([*iterate_tensors(one)], [*iterate_tensors(other)])
    elif isinstance(one, torch.Tensor):
        assert (one.stride(), one.requires_grad) == (other.stride(), other.requires_grad)
        assert torch.equal(view_bytes(one), view_bytes(other))
    elif isinstance(one, list | tuple | dict):
        assert len(one) == len(other)
        for pair in zip(*(tree.values() if isinstance(tree, dict) else tree for tree in (one, other)), strict=True):
            assert_same(*pair)
    elif not isinstance(one, torch.nn.Module):
        assert one == other


def test_arguments_of_all_kinds_can_be_sent() -> None:
    linear, other = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    sparse = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.tensor([1.0, 2.0]), (4,))
    args = ({"a": torch.ones(2, 3).T, 3: None}, linear, sparse, torch.Size([2]), 0.1, True, "x")
    own = ({"a": torch.zeros(1), 3: "a group"}, other, torch.zeros(1), None, 0.2, False, "y")
    got = DrawnArguments.take_apart(args).rebuild(own, torch.device("cpu"))
    assert (got[0][3], got[1], got[3:]) == ("a group", other, args[3:])
    assert_same(got[0]["a"], args[0]["a"])
    assert torch.equal(other.weight, linear.weight)
    assert torch.equal(got[2].to_dense(), sparse.to_dense())


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


@pytest.mark.parametrize("most_bytes", [1 << 20, 0])
def test_what_a_call_left_does_not_change_later(most_bytes: int) -> None:
    problem = load_problem("1_allreduce")
    call, output = Call.draw(problem, problem.case()), torch.zeros(64)
    copy = call.copy_result(output, most_bytes)
    output.fill_(1)
    (left,) = copy.settle([output])
    # Of a large result, some elements from everywhere.
    assert (left == 0).sum() == (64 if most_bytes else 4)


@pytest.mark.parametrize(
    "make",
    [
        torch.clone,
        torch.inference_mode()(torch.clone),
        lambda values: torch._neg_view(values.neg()),
        lambda values: values.clone().requires_grad_(),
    ],
)
def test_what_is_written_to_a_large_result_after_the_call_is_undone(make: Callable[[Tensor], Tensor]) -> None:
    values = torch.arange(100.0)
    result = make(values)
    copy = ResultCopy.of([result], most_bytes=0)
    with torch.inference_mode():
        result.data.zero_()
    (settled,) = copy.settle([result])
    assert torch.equal(settled.detach()[::16], values[::16])
