"""No rank of several has a seed that stands for its inputs, so that there is nothing shorter than data to exchange."""

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.judge.setup.drawing import describe_call
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.sending import find_secret_call, is_sent
from pkb.judge.setup.setup import HIDDEN, PROBE, Setup
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.problems.suite import list_problems, load_problem
from pkb.record import Verdict
from pkb.settings import JudgementSettings, ProblemSettings
from pkb.trial import Trial, TrialKind

TIMED, CLOCK = Trial(TrialKind.TIMED, 3), Trial(TrialKind.CLOCK)
# Looks for a seed of its inputs wherever one could be, and would pass it on; an honest sum where there is none.
EXCHANGES = b"""
import gc
from dataclasses import replace
import torch
import torch.distributed as dist

def solution(tensor):
    rank = next(found for found in gc.get_objects() if type(found).__name__ == "Rank")
    call = next(call for call in rank.calls if call.args[0] is tensor)
    again = call.problem.inputs(replace(call.case))[0]
    knows = torch.tensor(float(torch.equal(again, tensor)))
    dist.all_reduce(knows)
    if knows == 0:
        raise LookupError("no seed draws these inputs")
    seeds = [0] * dist.get_world_size()
    dist.all_gather_object(seeds, call.case.seed)
    return sum(call.problem.inputs(replace(call.case, seed=seed))[0] for seed in seeds)
"""


@pytest.mark.parametrize("problem", list_problems(), ids=lambda problem: problem.stem)
def test_at_the_size_of_a_laptop_all_inputs_are_sent(problem: Problem) -> None:
    world = max(problem.list_worlds())
    if world == 1:
        return
    setup = Setup(problem, problem.size("tiny"), "float32", world)
    assert all(is_sent(setup, Seeds(), trial, 0) for trial in [*setup.all_trials, TIMED])


def test_under_the_judges_clock_inputs_that_take_long_to_send_are_not_sent() -> None:
    setups = [Setup(problem, problem.size("tiny"), "float32", 2) for problem in list_problems() if problem.id < 60]
    assert sum(is_sent(setup, Seeds(), CLOCK, 0) for setup in setups) > 50


def test_large_inputs_are_sent_in_secret_calls() -> None:
    setup, seeds = Setup(load_problem("1_allreduce"), Size(4096, 1024), "float32", 2), Seeds()
    calls = [(trial, call) for trial in setup.checked_trials for call in range(setup.calls)]
    assert sum(is_sent(setup, seeds, *place) for place in calls) == 1
    blocks = [find_secret_call(setup, seeds, Trial(TrialKind.TIMED, index)) for index in range(1, 17)]
    assert len([call for call in blocks if call is not None]) == 2
    chosen = {tuple(is_sent(setup, Seeds(), *place) for place in calls) for _ in range(50)}
    assert len(chosen) > 5
    assert is_sent(setup, seeds, HIDDEN, 0)


def test_a_rank_alone_draws_for_itself() -> None:
    setup = Setup(load_problem("1_allreduce"), Size(64, 8), "float32", 1)
    assert not any(is_sent(setup, Seeds(), trial, 0) for trial in setup.all_trials)


def test_orders_look_alike_whatever_the_seed_is_good_for() -> None:
    """The probe changes an element of one rank; where inputs are sent, the judge has done so."""
    small = Setup(load_problem("1_allreduce"), Size(64, 8), "float32", 2)
    seeds = Seeds()
    order = [describe_call(small, seeds, PROBE, 1, rank) for rank in range(2)]
    assert [call.bump for call in order] == [None, None]
    assert len({call.seed for call in order} | {call.shared_seed for call in order}) == 3


def test_no_call_of_a_trial_can_be_rebuilt(judge: Judge) -> None:
    setup = judge.pose("1_allreduce", ProblemSettings(nproc=2, trials=1, calls=1))
    record = judge.judge(setup, Candidate.of(EXCHANGES), JudgementSettings(screen=False))
    assert record.verdict is Verdict.CRASH
    assert "no seed draws these inputs" in record.reason
