"""A process that runs a candidate has no module of the comparison, the clocks, the seeds, the screen or the records."""

import json
from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.settings import JudgementSettings, ProblemSettings, Rigor

BARRED = {
    *("agent", "analyse", "candidate", "cli", "engine", "failure", "generate", "judge", "provenance", "record"),
    *("report", "runs", "screen", "speedup", "tools", "trial"),
}
FEW = Rigor("few", 2, 0.1, least_pairs=2, calls_per_block=2, most_pairs=2, checked_blocks=1)
NAMES_MODULES = b"""
import json, sys
import torch.distributed as dist

def solution(tensor):
    print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] == "pkb")))
    out = tensor.clone()
    dist.all_reduce(out)
    return out
"""


def list_modules(judge: Judge, asked: JudgementSettings, folder: Path) -> list[set[str]]:
    """Return the modules of pkb that each call of a candidate finds loaded."""
    setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    record = judge.judge(setup, Candidate.of(NAMES_MODULES), asked, out=folder)
    assert record.correct, record.reason
    return [set(json.loads(line)) for path in folder.glob("logs/rank_*.txt") for line in path.open()]


@pytest.mark.parametrize("rigor", [None, FEW], ids=["tried", "timed"])
def test_a_candidate_finds_nothing_of_the_judge_in_its_process(
    judge: Judge, tmp_path: Path, rigor: Rigor | None
) -> None:
    calls = list_modules(judge, JudgementSettings(screen=False, rigor=rigor), tmp_path)
    assert len(calls) >= 2 * 3
    for loaded in calls:
        assert "pkb.rank.rank" in loaded
        assert {name for name in loaded if BARRED.intersection(name.split(".")[1:2])} == set()
