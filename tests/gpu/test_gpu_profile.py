"""Profiles of real kernels: torch's profiler on two ranks of one GPU, ncu on one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.platforms import load_platforms
from pkb.settings import JudgementSettings, ProblemSettings

lacking = load_platforms()["shared-gpu"].find_missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(lacking is not None, reason=f"no shared GPU here: {lacking}")]

KERNEL = Path(__file__).parents[2] / "solutions" / "triton" / "1_allreduce_triton.py"


def test_a_profile_names_device_kernels(tmp_path: Path) -> None:
    with Judge("shared-gpu") as judge:
        setup = judge.pose("allreduce", ProblemSettings(nproc=2, trials=1))
        record = judge.judge(setup, Candidate.read(KERNEL), JudgementSettings(profile=True), out=tmp_path)
    assert record.correct, record.reason
    assert record.profile is not None
    assert (record.profile.of, record.profile.notes) == ("device kernels", [])
    assert all(0 <= share < 1 for share in record.profile.idle.values())
    assert (tmp_path / "trace.json").is_file()


@pytest.mark.skipif(not shutil.which("ncu"), reason="ncu is not on the PATH")
def test_ncu_reports_on_one_rank(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pkb", "dryrun", "1", "--candidate", str(KERNEL), "--nproc", "1"]
    command += ["--platform", "shared-gpu", "--profiler", "ncu", "--out", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if "ERR_NVGPUCTRPERM" in ran.stdout:
        pytest.skip("this user may not read the GPU's counters")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "profile.ncu-rep").is_file()
    assert "compute and memory throughput" in ran.stdout
    assert " us  " in ran.stdout
