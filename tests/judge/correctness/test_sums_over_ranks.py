"""How exact a sum over ranks must be: rounding after every rank is right on every platform, and less is not."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from pkb.candidate import Candidate
from pkb.judge.correctness.compare import Expected, OwnError, compare, compare_together
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.protocol.sums import Sums
from pkb.rank.oracle import compute_in_float64, widen
from pkb.rank.sums import add_in_ring_order
from pkb.record import Verdict
from pkb.settings import JudgementSettings, ProblemSettings

MILLION = 1 << 20
HEAD = """
import torch
import torch.distributed as dist


def gather(tensor):
    blocks = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(blocks, tensor)
    return blocks


def solution(tensor):
"""
ROUNDED = """    first, *others = gather(tensor)[::-1]
    total = first.clone()
    for block in others:
        total += block
    return total
"""
IN_8_BITS = """    step = tensor.abs().amax(dim=1, keepdim=True).float() / 127
    total = (tensor / step).round() * step
    dist.all_reduce(total)
    return total.to(tensor.dtype)
"""
IN_BFLOAT16 = """    total = (tensor.bfloat16() * tensor.new_ones(1).bfloat16()).float()
    dist.all_reduce(total)
    return total
"""


def draw_terms(world: int, dtype: torch.dtype) -> list[Tensor]:
    generator = torch.Generator().manual_seed(world)
    return [torch.randn(MILLION, generator=generator).to(dtype) for _ in range(world)]


def expect_sum(terms: list[Tensor]) -> Expected:
    oracle = torch.stack(terms).sum(0, dtype=torch.float64)
    once, stepwise = (add_in_ring_order(terms, 0, sums) for sums in (Sums.ONCE, Sums.STEPWISE))
    return Expected.of(once, oracle).allow_errors_of(stepwise)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("world", [2, 4, 8])
def test_any_order_of_ranks_may_be_rounded_after_every_rank(world: int, dtype: torch.dtype) -> None:
    terms = draw_terms(world, dtype)
    expected = expect_sum(terms)
    for seed in range(3):
        order = torch.randperm(world, generator=torch.Generator().manual_seed(seed)).tolist()
        assert compare(add_in_ring_order([terms[k] for k in order], 0, Sums.STEPWISE), expected) is None
    halves = [add_in_ring_order(terms[k : k + 2], 0, Sums.STEPWISE) for k in range(0, world, 2)]
    assert compare(add_in_ring_order(halves, 0, Sums.STEPWISE), expected) is None


@pytest.mark.parametrize("world", [2, 4, 8])
def test_fewer_bits_on_the_wire_are_not_enough(world: int) -> None:
    terms = draw_terms(world, torch.bfloat16)
    expected = expect_sum(terms)
    step = 2 * max(float(term.abs().max()) for term in terms) / 255
    for lossy in (
        [term.to(torch.float8_e4m3fn).float() for term in terms],
        [term.to(torch.float8_e5m2).float() for term in terms],
        [(term.float() / step).round() * step for term in terms],
    ):
        assert compare(add_in_ring_order(lossy, 0, Sums.ONCE).bfloat16(), expected) is not None


@pytest.mark.parametrize("world", [2, 4, 8])
def test_a_product_in_bfloat16_is_too_many_where_float32_is_asked_for(world: int) -> None:
    terms = draw_terms(world, torch.float32)
    expected = expect_sum(terms)
    assert compare(add_in_ring_order(terms[::-1], 0, Sums.STEPWISE), expected) is None
    rounded = [(term.bfloat16() * 1).float() for term in terms]
    assert compare(add_in_ring_order(rounded, 0, Sums.ONCE), expected) is not None


def test_sums_that_overflow_on_the_way_allow_nothing() -> None:
    terms = [torch.full((8,), value).half() for value in (6e4, 6e4, -6e4, -5e4)]
    expected = expect_sum(terms)
    assert expected.stepwise == OwnError(0.0, 0.0)
    assert compare(torch.full((8,), float("inf")).half(), expected) is not None


def test_what_one_value_may_be_off_once_it_may_not_be_off_always() -> None:
    expected = Expected.of(torch.tensor(1.01), torch.tensor(1.0, dtype=torch.float64))
    once = (torch.tensor(1.038), expected)
    assert compare(*once) is None
    assert compare(torch.tensor(1.042), expected) is not None
    assert compare_together([once]) is None
    assert compare_together([once, (torch.tensor(0.99), expected), (torch.tensor(1.0), expected)]) is None
    found = compare_together([(torch.tensor(0.965), expected), once, once])
    assert found
    assert found[0] == 1


@pytest.mark.parametrize("world", [2, 4, 8])
def test_a_million_elements_are_judged_alike_on_all_numbers_of_ranks(judge: Judge, world: int) -> None:
    def find_verdict(body: str, dtype: str) -> tuple[Verdict, str]:
        setup = judge.pose("allreduce", ProblemSettings(nproc=world, trials=2, size="paper", dtype=dtype))
        record = judge.judge(setup, Candidate.of((HEAD + body).encode()), JudgementSettings(screen=False))
        return record.verdict, record.reason

    verdict, reason = find_verdict(ROUNDED, "bfloat16")
    assert verdict is Verdict.CORRECT, reason
    assert find_verdict(IN_8_BITS, "bfloat16")[0] is Verdict.WRONG
    assert find_verdict(IN_BFLOAT16, "float32")[0] is Verdict.WRONG


@pytest.mark.parametrize("is_counted_in_bfloat16", [True, False])
def test_both_ways_of_counting_a_mask_are_right_in_bfloat16(is_counted_in_bfloat16: bool) -> None:
    """Problem 24 divides by the sum of a mask: as the published file does, or by the exact count."""
    problem = load_problem("load_balancing_loss_fn")
    mean = problem.solution.__globals__["mean_over_tokens"]

    def divide_by_count(values: Tensor, weight: Tensor | None) -> Tensor:
        if weight is None:
            return values.mean(dim=0)
        return (values * weight.reshape(-1, *[1] * (values.dim() - 1))).sum(dim=0) / weight.sum()

    def find_loss(args: tuple[Any, ...], mean_over_tokens: Callable[..., Tensor]) -> Tensor:
        with patch.dict(problem.solution.__globals__, mean_over_tokens=mean_over_tokens):
            return problem.solution(*args)

    for draw in range(10):
        trials: list[list[tuple[Tensor, Expected]]] = []
        for trial in range(5):
            trials.append([])
            for call in range(3):
                seeds = {"seed": 100 * draw + 10 * trial + call, "shared_seed": draw}
                args = problem.inputs(problem.case(problem.sizes["tiny"], "bfloat16", 1, trial=trial, **seeds))
                with compute_in_float64(torch.bfloat16):
                    oracle = find_loss(widen(args), mean)
                actual = find_loss(args, mean if is_counted_in_bfloat16 else divide_by_count)
                trials[-1].append((actual, Expected.of(find_loss(args, mean), oracle)))
        typical = OwnError.pool([expected.own for calls in trials for _, expected in calls])
        for calls in trials:
            judged = [(actual, expected.allow_at_least(typical, OwnError(0.0, 0.0))) for actual, expected in calls]
            assert not any(compare(actual, expected) for actual, expected in judged)
            assert not compare_together(judged)
            assert all(compare(actual * 1.03, expected) for actual, expected in judged)
