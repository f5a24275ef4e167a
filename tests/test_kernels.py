"""The kernels that we ship are right, and without their barrier they are not."""

from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.judge import Judge
from pkb.problem import Size
from pkb.record import Verdict
from pkb.registry import load

KERNELS = sorted((Path(__file__).parents[1] / "solutions" / "triton").glob("*.py"))


def stem(kernel: Path) -> str:
    return kernel.stem.removesuffix("_triton")


def test_all_are_here() -> None:
    numbers = sorted(int(kernel.name.split("_")[0]) for kernel in KERNELS)
    assert numbers == [1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 18]


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kernel", KERNELS, ids=stem)
def test_correct(judge: Judge, kernel: Path, dtype: str, world: int) -> None:
    record = judge.judge(judge.pose(stem(kernel), nproc=world, dtype=dtype, trials=3), Candidate.read(kernel))
    assert record.verdict is Verdict.CORRECT, record.reason
    assert record.candidate["backend"] == "triton"


@pytest.mark.parametrize("kernel", KERNELS, ids=stem)
def test_correct_at_a_size_that_fits_no_tile(judge: Judge, kernel: Path) -> None:
    problem = load(stem(kernel))
    setup = judge.pose(problem, nproc=2, size=Size(70, 67), trials=1)
    assert judge.judge(setup, Candidate.read(kernel)).correct


@pytest.mark.parametrize("kernel", KERNELS, ids=stem)
def test_wrong_without_the_barrier(judge: Judge, kernel: Path) -> None:
    source = kernel.read_text()
    racy = source.replace("    rank_barrier(signals, RANK, WORLD)\n", "")
    assert racy != source
    record = judge.judge(judge.pose(stem(kernel), nproc=4), Candidate.of(racy.encode()))
    assert record.verdict is Verdict.WRONG, record.reason
