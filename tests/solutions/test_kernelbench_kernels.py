"""The kernels that we ship for models are right, and are their own work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.problem import Problem
from pkb.problems.suite import Suite
from pkb.record import Verdict
from pkb.settings import JudgementSettings, ProblemSettings

SOLUTIONS = Path(__file__).parents[2] / "solutions" / "kernelbench"
KERNELS = sorted((SOLUTIONS / "triton").glob("*.py"))
WIDE_HEADS = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, Q, K, V):
        return nn.functional.scaled_dot_product_attention(Q, K, V)


def get_inputs():
    return [torch.rand(1, 2, 40, 400) for _ in range(3)]


def get_init_inputs():
    return []
"""
EXAMPLES = Suite(SOLUTIONS / "examples" / "tasks").problems()


def stem(kernel: Path) -> str:
    return kernel.stem.removesuffix("_triton")


def test_all_are_here() -> None:
    assert len(KERNELS) == 23
    assert [problem.name for problem in EXAMPLES] == ["add", "linear_gelu", "matmul", "flash_attention"]


@pytest.mark.parametrize(("dtype", "trials", "calls"), [("float32", 3, 3), ("bfloat16", 1, 2)])
@pytest.mark.parametrize("kernel", KERNELS, ids=stem)
def test_correct_from_scratch(judge: Judge, kernel: Path, dtype: str, trials: int, calls: int) -> None:
    setup = judge.pose(stem(kernel), ProblemSettings(dtype=dtype, trials=trials, calls=calls))
    record = judge.judge(setup, Candidate.read(kernel), JudgementSettings(track="scratch"))
    assert record.verdict is Verdict.CORRECT, record.reason
    assert (record.candidate.backend, record.setup.state) == ("triton", "by name")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention_with_heads_too_wide_for_one_program(judge: Judge, dtype: str, tmp_path: Path) -> None:
    (tmp_path / "1_wide.py").write_text(WIDE_HEADS)
    (kernel,) = (SOLUTIONS / "triton").glob("L1_97_*.py")
    (problem,) = Suite(tmp_path).problems()
    record = judge.judge(
        judge.pose(problem, ProblemSettings(dtype=dtype, trials=1)),
        Candidate.read(kernel),
        JudgementSettings(track="scratch"),
    )
    assert record.verdict is Verdict.CORRECT, record.reason


@pytest.mark.skipif(sys.platform != "linux", reason="Triton's compiler is built for Linux only")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_all_compile_for_a_gpu(dtype: str, tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("run_compile_models.py")), dtype, *map(str, KERNELS)]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "TRITON_INTERPRET": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {line.split()[0] for line in done.stdout.splitlines()} == {kernel.stem for kernel in KERNELS}


@pytest.mark.parametrize(("dtype", "trials"), [("float32", 3), ("bfloat16", 1)])
@pytest.mark.parametrize("problem", EXAMPLES, ids=lambda problem: problem.name)
def test_examples_of_prompts_are_correct(judge: Judge, problem: Problem, dtype: str, trials: int) -> None:
    kernel = SOLUTIONS / "examples" / "triton" / f"{problem.stem}_triton.py"
    record = judge.judge(
        judge.pose(problem, ProblemSettings(dtype=dtype, trials=trials)),
        Candidate.read(kernel),
        JudgementSettings(track="scratch"),
    )
    assert record.verdict is Verdict.CORRECT, record.reason
    assert record.setup.state == "by name"
