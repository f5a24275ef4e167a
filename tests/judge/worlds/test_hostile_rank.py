"""Ranks that speak the protocol themselves, and answer wrongly, late, twice or never: each has its verdict, in time."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from helpers.hostile_rank import QUICK, SLOW, make_candidate
from pkb.base import toolchain
from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor

RIGOR = Rigor("hostile", 2, 0.5, least_pairs=2, calls_per_block=2, most_pairs=2, checked_blocks=1)
IN_TRIALS = ("LoadSolution", "DrawInputs", "RunCalls", "SendTensors", "HoldFirstResult", "ReportConduct")
IN_TIMING = ("WarmUp", "TimeBlock", "HoldTimedResult", "RunUntimed", "DigestResults", "ReleaseMemory")
FEW = ("other_fields", "cut_off", "stale", "twice")
UNNOTICED = {("ReportConduct", "twice"), ("ReportConduct", "ahead"), ("ReleaseMemory", "twice")}
"""The last order has been answered well, and nothing is read after it: these candidates may be CORRECT."""
MOST_S = 25.0
"""Seconds that any of these judgements may take, on a busy machine; none waits for the hostile rank's own times."""
MODEL = "class ModelNew:\n    def __init__(self, *args):\n        pass\n"


@pytest.fixture(scope="module")
def hasty() -> Iterator[Judge]:
    with Judge("cpu", Limits(load_s=2.0, trial_s=1.0, build_s=4.0)) as judge:
        yield judge


def judge_hostile(judge: Judge, order: str, manner: str, timed: bool = False, profile: bool = False) -> Record:
    setup = judge.pose("1_allreduce", ProblemSettings(nproc=1, trials=1))
    settings = JudgementSettings(screen=False, rigor=RIGOR if timed else None, profile=profile)
    start = time.monotonic()
    record = judge.judge(setup, Candidate.of(make_candidate(order, manner)), settings)
    assert time.monotonic() - start < MOST_S
    return record


def check_next(judge: Judge) -> None:
    """Fail unless an honest candidate that comes next is judged as ever."""
    setup = replace(judge.pose("1_allreduce", ProblemSettings(nproc=1, trials=1)), limits=Limits())
    honest = Candidate.of(b"def solution(tensor):\n    return tensor.clone()\n")
    assert judge.judge(setup, honest).verdict is Verdict.CORRECT


def check_record(record: Record, manner: str) -> None:
    if manner in SLOW:
        assert record.verdict in (Verdict.HANG, Verdict.CRASH), record.reason
    else:
        assert record.verdict in (Verdict.CRASH, Verdict.BUILD_FAILED, Verdict.HANG), record.reason
    assert record.reason.isprintable()


@pytest.mark.parametrize("order", IN_TRIALS)
def test_in_trials(hasty: Judge, order: str) -> None:
    for manner in (*QUICK, "never"):
        record = judge_hostile(hasty, order, manner)
        if (order, manner) not in UNNOTICED:
            check_record(record, manner)
    check_next(hasty)


@pytest.mark.parametrize("order", IN_TIMING)
def test_in_timing(hasty: Judge, order: str) -> None:
    for manner in (*FEW, SLOW[IN_TIMING.index(order) % len(SLOW)]):
        record = judge_hostile(hasty, order, manner, timed=True)
        if (order, manner) not in UNNOTICED:
            check_record(record, manner)
    check_next(hasty)


@pytest.mark.parametrize("manner", ["late", "drip"])
def test_late_answers(hasty: Judge, manner: str) -> None:
    for order in ("LoadSolution", "RunCalls", "SendTensors"):
        check_record(judge_hostile(hasty, order, manner), manner)
    check_next(hasty)


@pytest.mark.parametrize("manner", ["other_fields", "never"])
def test_while_a_profile_is_taken_the_verdict_stands(hasty: Judge, manner: str) -> None:
    record = judge_hostile(hasty, "RunProfiler", manner, profile=True)
    assert record.verdict is Verdict.CORRECT
    assert record.profile
    assert record.profile.notes
    check_next(hasty)


@pytest.mark.skipif(bool(toolchain.find_missing()), reason="needs a C++ compiler")
@pytest.mark.parametrize("manner", ["deep", "never"])
def test_a_builder(hasty: Judge, manner: str) -> None:
    source = make_candidate("LoadSolution", manner, "COMPILES = 'torch.utils.cpp_extension'")
    setup = hasty.pose("1_allreduce", ProblemSettings(nproc=1, trials=1))
    record = hasty.judge(setup, Candidate.of(source), JudgementSettings(screen=False))
    assert record.verdict in (Verdict.BUILD_FAILED, Verdict.CRASH), record.reason
    check_next(hasty)


def test_a_model_that_reports_its_weights_badly(hasty: Judge) -> None:
    setup = hasty.pose("L1/19", ProblemSettings(trials=1))
    for manner in ("other_fields", "twice", "never"):
        source = make_candidate("BuildModel", manner, MODEL)
        record = hasty.judge(setup, Candidate.of(source), JudgementSettings(screen=False))
        assert record.verdict in (Verdict.CRASH, Verdict.HANG, Verdict.BUILD_FAILED), record.reason
    check_next(hasty)
