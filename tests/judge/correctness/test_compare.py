"""The comparison accepts every right answer and no wrong one."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pkb.judge.correctness.compare import Expected, OwnError, _rms_and_worst, compare
from pkb.settings import Tolerance

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def summed(terms: Tensor, dtype: torch.dtype) -> Tensor:
    """Rounded after every addition, in rank order."""
    total = terms[0].to(dtype)
    for term in terms[1:]:
        total = total + term.to(dtype)
    return total


def a_sum(dtype: torch.dtype, shape: tuple[int, ...] = (64, 33), ranks: int = 8) -> tuple[Tensor, Expected]:
    generator = torch.Generator().manual_seed(5)
    terms = torch.randn(ranks, *shape, generator=generator).to(dtype)
    return terms, Expected.of(summed(terms, dtype), terms.double().sum(0))


@pytest.mark.parametrize("dtype", DTYPES)
class TestOracleRule:
    def test_accepts_the_reference_itself(self, dtype: torch.dtype) -> None:
        _, expected = a_sum(dtype)
        assert compare(expected.reference, expected) is None

    def test_accepts_another_order_and_a_wider_accumulator(self, dtype: torch.dtype) -> None:
        terms, expected = a_sum(dtype)
        assert compare(summed(terms.flip(0), dtype), expected) is None
        assert compare(terms.float().sum(0).to(dtype), expected) is None

    @pytest.mark.parametrize("wrong", ["zeros", "mean", "one_rank_dropped", "scaled", "shifted", "fp8"])
    def test_rejects_wrong_answers(self, dtype: torch.dtype, wrong: str) -> None:
        terms, expected = a_sum(dtype)
        right = expected.reference
        answers = {
            "zeros": torch.zeros_like(right),
            "mean": torch.full_like(right, float(right.mean())),
            "one_rank_dropped": summed(terms[1:], dtype),
            "scaled": right / len(terms),
            "shifted": right.roll(1, 0),
            "fp8": terms.to(torch.float8_e4m3fn).float().sum(0).to(dtype),
        }
        assert compare(answers[wrong], expected) is not None

    def test_rejects_one_element_off_by_a_tenth_of_the_scale(self, dtype: torch.dtype) -> None:
        _, expected = a_sum(dtype)
        wrong = expected.reference.clone()
        wrong[7, 9] += 0.1 * float(expected.oracle.square().mean().sqrt())
        mismatch = compare(wrong, expected)
        assert mismatch is not None
        assert (mismatch.index, mismatch.differing) == ([7, 9], 1)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_rejects_what_is_not_finite(self, dtype: torch.dtype, value: float) -> None:
        _, expected = a_sum(dtype)
        wrong = expected.reference.clone()
        wrong[0, 0] = value
        mismatch = compare(wrong, expected)
        assert mismatch is not None
        assert mismatch.got == str(value)

    def test_a_large_value_elsewhere_excuses_nothing(self, dtype: torch.dtype) -> None:
        _, expected = a_sum(dtype)
        oracle, reference = expected.oracle.clone(), expected.reference.clone()
        oracle[0, 0] = reference[0, 0] = 1000.0
        wrong = reference.clone()
        wrong[7, 9] += 0.5 * float(oracle.square().mean().sqrt())
        assert compare(wrong, Expected.of(reference, oracle)) is not None


def test_infinities_that_belong_there_are_right() -> None:
    reference = torch.tensor([1.0, -math.inf, 3.0])
    expected = Expected.of(reference, reference.double())
    assert compare(reference.clone(), expected) is None
    assert compare(torch.tensor([1.0, 2.0, 3.0]), expected) is not None


def test_tf32_is_not_float32() -> None:
    a, b = (torch.randn(64, 256, generator=torch.Generator().manual_seed(k)) for k in range(2))
    expected = Expected.of(a @ b.T, a.double() @ b.T.double())
    cut = lambda x: (x.view(torch.int32) & ~0x1FFF).view(torch.float32)  # noqa: E731
    assert compare(cut(a) @ cut(b).T, expected) is not None


def test_zero_expected_means_zero() -> None:
    zeros = torch.zeros(8)
    expected = Expected.of(zeros, zeros.double())
    assert compare(zeros, expected) is None
    assert compare(torch.full((8,), 1e-30), expected) is not None


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_integers_are_exact(dtype: torch.dtype) -> None:
    reference = torch.tensor([0, 1, 1, 0]).to(dtype)
    wrong = torch.tensor([0, 1, 0, 0]).to(dtype)
    expected = Expected.of(reference, reference)
    assert compare(reference.clone(), expected) is None
    mismatch = compare(wrong, expected)
    assert mismatch is not None
    assert (mismatch.index, mismatch.differing) == ([2], 1)


def test_exact_floats_are_compared_by_bits_but_for_the_sign_of_zero() -> None:
    reference = torch.tensor([0.0, 1.0, math.nan])
    expected = Expected.of(reference, reference.double(), exact=True)
    assert compare(torch.tensor([-0.0, 1.0, math.nan]), expected) is None
    assert compare(torch.tensor([0.0, 1.0 + 2**-23, math.nan]), expected) is not None


def test_plain_tolerance_replaces_the_rule() -> None:
    reference = torch.tensor([1.0, 100.0])
    expected = Expected.of(reference, reference.double())
    assert compare(torch.tensor([1.05, 105.0]), expected, Tolerance(0.0, 0.1)) is None
    assert compare(torch.tensor([1.2, 100.0]), expected, Tolerance(0.0, 0.1)) is not None
    assert compare(torch.tensor([math.nan, 100.0]), expected, Tolerance(1.0, 1.0)) is not None


def test_scalars_and_empty_tensors() -> None:
    scalar = torch.tensor(2.0)
    expected = Expected.of(scalar, scalar.double())
    assert compare(scalar, expected) is None
    mismatch = compare(torch.tensor(2.1), expected)
    assert mismatch is not None
    assert mismatch.index == []
    assert compare(torch.empty(0), Expected.of(torch.empty(0), torch.empty(0))) is None


def test_a_lucky_reference_does_not_reject_honest_kernels() -> None:
    value = torch.tensor(1.0).bfloat16()
    lucky = Expected.of(value, torch.tensor(1.0))
    typical = OwnError.pool([lucky.own, OwnError(0.02, 0.02), OwnError(0.03, 0.03)])
    honest = torch.tensor(1.03).bfloat16()
    assert compare(honest, lucky) is not None
    assert compare(honest, replace(lucky, own=lucky.own.at_least(typical))) is None
    assert OwnError(1.0, 0.1).at_least(OwnError(0.5, 0.2)) == OwnError(1.0, 0.2)


def test_complex_values_are_compared_by_their_distance() -> None:
    oracle = torch.randn(64, 33, dtype=torch.complex128, generator=torch.Generator().manual_seed(5))
    expected = Expected.of(oracle.to(torch.complex64), oracle)
    assert compare(expected.reference, expected) is None
    found = compare(expected.reference.conj().resolve_conj(), expected)
    assert found
    assert found.differing > 2000


def test_what_is_right_by_far_needs_no_closer_look(monkeypatch: pytest.MonkeyPatch) -> None:
    terms, expected = a_sum(torch.float32)
    large = expected.oracle.clone()
    large[3, 4] = 1e6
    beside = Expected.of(large.float(), large)
    closely = []
    monkeypatch.setattr(
        "pkb.judge.correctness.compare._rms_and_worst", lambda *given: closely.append(given) or _rms_and_worst(*given)
    )
    assert compare(summed(terms.flip(0), torch.float32), expected) is None
    assert not closely
    # Where one value is far larger than others, only its own size tells how much it may be off.
    off = beside.reference.clone()
    off[3, 4] += 0.5
    assert compare(off, beside) is None
    assert closely
