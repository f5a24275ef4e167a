"""Which errors of the reference are a measure for which calls."""

import torch

from pkb.judge.correctness.compare import Expected
from pkb.judge.correctness.reference import ExpectedCall, Reference
from pkb.judge.correctness.results import Result
from pkb.judge.setup.setup import HIDDEN, PROBE
from pkb.trial import Trial, TrialKind

FIRST, SECOND = Trial(TrialKind.CHECK), Trial(TrialKind.CHECK, 1)


def make_call(error: float, has_outliers: bool) -> ExpectedCall:
    """Return a call whose reference is off by this share everywhere."""
    oracle = torch.ones(8, dtype=torch.float64)
    expected = Expected.of((oracle * (1 + error)).float(), oracle)
    return ExpectedCall(Result(0, 0, None, [], []), [expected], [None], [0], has_outliers)


def test_errors_of_calls_with_outliers_excuse_no_other_call() -> None:
    calls = {
        (FIRST, 0, 0): make_call(0.1, has_outliers=True),
        (SECOND, 0, 0): make_call(1e-3, has_outliers=False),
        (HIDDEN, 0, 0): make_call(0.0, has_outliers=False),
    }
    pooled = Reference(calls).pool_errors(Reference(calls)).calls
    assert pooled[FIRST, 0, 0].outputs[0].own.worst > 0.09
    # The hidden call, right by luck, is allowed what the other plain call errs, and not more.
    assert 5e-4 < pooled[HIDDEN, 0, 0].outputs[0].own.worst < 2e-3


def test_a_call_of_another_kind_is_allowed_its_own_errors_alone() -> None:
    measure = Reference({(FIRST, 0, 0): make_call(0.1, has_outliers=True)})
    pooled = Reference({(PROBE, 0, 0): make_call(1e-3, has_outliers=False)}).pool_errors(measure).calls
    assert pooled[PROBE, 0, 0].outputs[0].own.worst < 2e-3
