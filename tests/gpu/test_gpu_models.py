"""Models on a GPU: a stream that nobody waits for, published sizes, references."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.platforms import load_platforms
from pkb.problems.suite import Suite, load_problem
from pkb.record import Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor

lacking = load_platforms()["shared-gpu"].find_missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(lacking is not None, reason=f"no shared GPU here: {lacking}")]

MODELS = Suite(Path(__file__).parents[1] / "models")
RIGOR = Rigor("few", 4, 2.0, least_pairs=4, calls_per_block=4, most_pairs=4, checked_blocks=4)
UNSYNCHRONISED = b"""
import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = torch.cuda.Stream()

    def forward(self, x):
        out = torch.empty_like(x)
        with torch.cuda.stream(self.stream):
            # Long enough for the caller's marks to be behind us.
            torch.cuda._sleep(20_000_000)
            torch.clamp(x, min=0, out=out)
        return out
"""


@pytest.fixture(scope="module")
def gpu() -> Iterator[Judge]:
    with Judge("shared-gpu", Limits(load_s=60, trial_s=60)) as judge:
        yield judge


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("problem", ["L2/7", "L3/4"])
def test_references_are_right_at_the_published_size(gpu: Judge, problem: str, dtype: str) -> None:
    found = MODELS.load(problem)
    record = gpu.judge(
        gpu.pose(found, ProblemSettings(size="paper", dtype=dtype, trials=2)),
        Candidate.reference(found),
        JudgementSettings(rigor=RIGOR),
    )
    assert record.correct, record.reason


def test_a_result_of_six_gigabytes_is_judged_and_timed(gpu: Judge) -> None:
    relu = load_problem("L1/19")
    record = gpu.judge(
        gpu.pose(relu, ProblemSettings(size="paper", trials=2)),
        Candidate.reference(relu),
        JudgementSettings(rigor=RIGOR),
    )
    assert record.correct, record.reason
    assert record.setup.calls == 1


def test_a_stream_that_nobody_waits_for_is_found(gpu: Judge) -> None:
    record = gpu.judge(
        gpu.pose("L1/19", ProblemSettings(trials=2)),
        Candidate.of(UNSYNCHRONISED),
        JudgementSettings(rigor=RIGOR, screen=False),
    )
    found = record.verdict, record.evidence.check
    assert found in {
        (Verdict.WRONG, "values"),
        (Verdict.WRONG, "timed-values"),
        (Verdict.CHEAT, "outside-clock"),
    }, record.reason
