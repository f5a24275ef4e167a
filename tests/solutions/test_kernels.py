"""The kernels that we ship are right, and without their barrier they are not."""

from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.size import Size
from pkb.record import Verdict
from pkb.settings import ProblemSettings

LARGER = [
    # Two shots.
    ("1_allreduce", 3, "float32", Size(513, 257)),
    ("13_gemm_allreduce", 3, "bfloat16", Size(512, 512)),
    # Tiles of 128: they fit, and they do not.
    *(("12_allgather_gemm", 2, "bfloat16", size) for size in (Size(384, 256), Size(300, 272))),
    ("13_gemm_allreduce", 2, "bfloat16", Size(300, 272)),
    *(("16_gemm_reducescatter", 2, "bfloat16", size) for size in (Size(512, 256), Size(600, 272))),
    # A row of the vocabulary in several blocks.
    ("73_vocab_parallel_cross_entropy_loss", 2, "bfloat16", Size(3, 10002)),
]
"""Sizes at which kernels divide their work otherwise than at small ones."""

KERNELS = sorted((Path(__file__).parents[2] / "solutions" / "triton").glob("*.py"))


def stem(kernel: Path) -> str:
    return kernel.stem.removesuffix("_triton")


def test_all_are_here() -> None:
    numbers = sorted(int(kernel.name.split("_")[0]) for kernel in KERNELS)
    assert numbers == [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 18, 45, 73]


# Both dtypes, both worlds, whole tiles and ragged ones: in two cases for each kernel instead of eight. The judge adds a
# hidden size to each.
@pytest.mark.parametrize("kernel", KERNELS, ids=stem)
def test_correct_in_float32_at_4_ranks(judge: Judge, kernel: Path) -> None:
    record = judge.judge(judge.pose(stem(kernel), ProblemSettings(nproc=4, trials=3)), Candidate.read(kernel))
    assert record.verdict is Verdict.CORRECT, record.reason
    assert record.candidate.backend == "triton"


@pytest.mark.parametrize("kernel", KERNELS, ids=stem)
def test_correct_in_bfloat16_at_2_ranks_at_a_size_that_fits_no_tile(judge: Judge, kernel: Path) -> None:
    setup = judge.pose(stem(kernel), ProblemSettings(nproc=2, dtype="bfloat16", size=Size(70, 66), trials=1))
    record = judge.judge(setup, Candidate.read(kernel))
    assert record.verdict is Verdict.CORRECT, record.reason


@pytest.mark.parametrize(("name", "world", "dtype", "size"), LARGER)
def test_correct_when_larger(judge: Judge, name: str, world: int, dtype: str, size: Size) -> None:
    (kernel,) = [kernel for kernel in KERNELS if stem(kernel) == name]
    setup = judge.pose(name, ProblemSettings(nproc=world, dtype=dtype, size=size, trials=1, calls=2))
    record = judge.judge(setup, Candidate.read(kernel))
    assert record.verdict is Verdict.CORRECT, record.reason


@pytest.mark.parametrize("kernel", KERNELS, ids=stem)
def test_wrong_without_the_barrier(judge: Judge, kernel: Path) -> None:
    source = kernel.read_text()
    racy = source.replace("    rank_barrier(signals, RANK, WORLD)\n", "")
    assert racy != source
    record = judge.judge(judge.pose(stem(kernel), ProblemSettings(nproc=4)), Candidate.of(racy.encode()))
    assert record.verdict is Verdict.WRONG, record.reason
