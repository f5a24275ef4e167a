"""Every problem is strong: no wrong variant passes the judge's comparison, and a right one always does."""

import contextlib

import pytest

from pkb.judge.judge import Judge
from pkb.problems.problem import Problem
from pkb.problems.suite import list_problems
from pkb.protocol.fault_names import (
    COMMUNICATION_FAULTS,
    FAULTS,
    NOTHING,
    OTHER_LIBRARY,
    OTHER_ORDER,
    OUTPUT_FAULTS,
    SKIP,
    STALE,
)
from pkb.rank.faults import OBSERVERS, OUTPUT_CHANGES
from pkb.rank.faults.model_faults import MODEL_FAULTS
from pkb.settings import ProblemSettings
from pkb.tools.lint import LintFinding, lint

ALL = list_problems()


# Every problem in bfloat16: its tolerance is the widest and its values coincide the most, so a fault that survives
# anywhere survives there. In float32 all faults of a few problems (`pkb lint all` has them all), and of
# every problem whose results are rounded the right variant, which is allowed the least there. Both at 4 ranks: with 2 a
# sum has only one order, and some groups of ranks have one member.
ROUNDED = [problem for problem in ALL if not problem.exact]
CASES = [(problem, "bfloat16") for problem in ALL] + [(problem, "float32") for problem in ROUNDED[::13]]


@pytest.mark.parametrize(("problem", "dtype"), CASES, ids=lambda value: getattr(value, "stem", value))
def test_no_wrong_variant_survives(judge: Judge, problem: Problem, dtype: str) -> None:
    findings = list(lint(judge, judge.pose(problem, ProblemSettings(nproc=4, dtype=dtype))))
    assert [finding for finding in findings if finding.is_bad] == []
    assert {finding.variant for finding in findings} >= {*FAULTS, *problem.mutants}


@pytest.mark.parametrize("problem", ROUNDED, ids=lambda problem: problem.stem)
def test_a_sum_in_another_order_is_right_in_float32(judge: Judge, problem: Problem) -> None:
    findings = lint(judge, judge.pose(problem, ProblemSettings(nproc=4, dtype="float32", trials=2)))
    with contextlib.closing(findings):  # type: ignore[type-var]
        found = next(findings)
    assert (found.variant, found.outcome) == (OTHER_ORDER, "passed")


@pytest.mark.parametrize("problem", ALL, ids=lambda problem: problem.stem)
def test_problems_bring_mutants_of_their_own(problem: Problem) -> None:
    assert problem.mutants
    assert not set(problem.mutants) & set(FAULTS)


def test_every_named_fault_is_implemented() -> None:
    assert tuple(OUTPUT_CHANGES) == OUTPUT_FAULTS
    assert tuple(OBSERVERS) == COMMUNICATION_FAULTS
    assert set(MODEL_FAULTS) == {SKIP, STALE, NOTHING, OTHER_LIBRARY}


def outcomes(judge: Judge, **changes: object) -> dict[str, LintFinding]:
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=2, **changes))  # type: ignore[arg-type]
    return {finding.variant: finding for finding in lint(judge, setup)}


def test_faults_do_what_they_say(judge: Judge) -> None:
    found = outcomes(judge)
    assert found["other-order"].outcome == "passed"
    # A sum does not know who sent what.
    assert found["ranks-swapped"].outcome == "no effect"
    assert "call 1" in found["previous-output"].detail
    assert "call 1" in found["stale"].detail


def test_a_world_of_one_is_weak_and_lint_says_so(judge: Judge) -> None:
    setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
    bad = {finding.variant for finding in lint(judge, setup) if finding.is_bad}
    assert {"no-communication", "times-world", "stale"} <= bad
    assert not {"zeros", "previous-output"} & bad
