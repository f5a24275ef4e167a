"""Several ranks on one GPU: real kernels, and candidates that leave the GPU in a bad state."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.platforms import load_platforms
from pkb.problems.suite import load_problem
from pkb.record import Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings

lacking = load_platforms()["shared-gpu"].find_missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(lacking is not None, reason=f"no shared GPU here: {lacking}")]

KERNELS = sorted((Path(__file__).parents[2] / "solutions").glob("*/*.py"))
BARRIERS = {
    "1_allreduce_triton": "    rank_barrier(signals, RANK, WORLD)\n",
    "1_allreduce_cuda": "    rank_barrier(signals, rank, WORLD);\n",
}
DEADLINE_S = 15.0
HEAD = """
import os, torch, triton
import torch.distributed as dist
import triton.language as tl

@triton.jit
def kernel(pointer, STRAY: tl.constexpr):
    if STRAY:
        tl.store(pointer + (1 << 40), 1)
    else:
        while tl.atomic_add(pointer, 0) == 0:
            pass

def solution(tensor):
    out = tensor.clone()
    flag = torch.zeros(1, dtype=torch.int32, device=tensor.device)
"""
FAULTS = {
    "never_ends": (Verdict.HANG, "did not finish", "kernel[(1,)](flag, False)"),
    "illegal_access": (Verdict.CRASH, "illegal memory access", "kernel[(1,)](flag, True); torch.cuda.synchronize()"),
    "out_of_memory": (Verdict.CRASH, "OutOfMemoryError", "torch.empty(1 << 42, device=tensor.device)"),
    "killed_in_a_collective": (Verdict.CRASH, "SIGKILL", "if dist.get_rank() == 1: os.kill(os.getpid(), 9)"),
}


@pytest.fixture(scope="module")
def gpu() -> Iterator[Judge]:
    with Judge("shared-gpu", Limits(load_s=60, trial_s=DEADLINE_S)) as judge:
        yield judge


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.stem)
def test_shipped_kernels_are_correct(gpu: Judge, kernel: Path) -> None:
    # At 4 ranks and paper size, benchmarks/gpu_test.py judges and times them.
    problem = kernel.stem.rpartition("_")[0]
    record = gpu.judge(gpu.pose(problem, ProblemSettings(nproc=2, trials=2)), Candidate.read(kernel))
    assert record.verdict is Verdict.CORRECT, record.reason
    assert record.environment.details["multicast"] is False


@pytest.mark.parametrize("backend", ["cuda", "triton"])
def test_own_work_passes_as_such(gpu: Judge, backend: str) -> None:
    (kernel,) = [kernel for kernel in KERNELS if kernel.stem == f"13_gemm_allreduce_{backend}"]
    record = gpu.judge(
        gpu.pose(13, ProblemSettings(nproc=2, trials=1)), Candidate.read(kernel), JudgementSettings(track="scratch")
    )
    assert record.verdict is Verdict.CORRECT, record.reason


@pytest.mark.parametrize("problem", ["ring_attention_tp", "ring_attention_backward_dp"])
def test_groups_that_a_reference_makes_leave_no_signals_of_its_own(gpu: Judge, problem: str) -> None:
    found = load_problem(problem)
    record = gpu.judge(
        gpu.pose(found, ProblemSettings(nproc=4, dtype="bfloat16", trials=1)), Candidate.reference(found)
    )
    assert record.verdict is Verdict.CORRECT, record.reason


@pytest.mark.parametrize("name", BARRIERS)
def test_a_missing_barrier_is_wrong(gpu: Judge, name: str) -> None:
    (kernel,) = [kernel for kernel in KERNELS if kernel.stem == name]
    source = kernel.read_text()
    racy = source.replace(BARRIERS[name], "")
    assert racy != source
    record = gpu.judge(gpu.pose("allreduce", ProblemSettings(nproc=4)), Candidate.of(racy.encode()))
    assert record.verdict is Verdict.WRONG, record.reason


@pytest.mark.parametrize("name", FAULTS)
def test_the_gpu_is_usable_after(gpu: Judge, name: str) -> None:
    verdict, says, body = FAULTS[name]
    source = f"{HEAD}    {body}\n    dist.all_reduce(out)\n    return out\n"
    setup = gpu.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    start = time.monotonic()
    record = gpu.judge(setup, Candidate.of(source.encode(), name), JudgementSettings(screen=False))
    assert (record.verdict, says in record.reason) == (verdict, True), (record.reason, record.evidence)
    assert time.monotonic() - start < DEADLINE_S + 15
    assert gpu.judge(setup, Candidate.reference(load_problem("allreduce"))).correct


ONE_SHOT = """
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

buffers = {}


def solution(tensor):
    key = tensor.shape, tensor.dtype
    if key not in buffers:
        buffers[key] = symm_mem.empty(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
        symm_mem.rendezvous(buffers[key], dist.group.WORLD)
    buffers[key].copy_(QUANTISED.reshape(-1))
    name = dist.group.WORLD.group_name
    return torch.ops.symm_mem.one_shot_all_reduce(buffers[key], "sum", name).view(tensor.shape)
"""


@pytest.mark.parametrize("world", [2, 4, 8])
def test_an_all_reduce_that_rounds_after_every_rank_is_right(gpu: Judge, world: int) -> None:
    def find_verdict(sent: str) -> tuple[Verdict, str]:
        setup = gpu.pose("allreduce", ProblemSettings(nproc=world, size="paper", dtype="bfloat16"))
        source = ONE_SHOT.replace("QUANTISED", sent).encode()
        record = gpu.judge(setup, Candidate.of(source), JudgementSettings(screen=False))
        return record.verdict, record.reason

    verdict, reason = find_verdict("tensor")
    assert verdict is Verdict.CORRECT, reason
    assert find_verdict("tensor.to(torch.float8_e4m3fn).to(tensor.dtype)")[0] is Verdict.WRONG
