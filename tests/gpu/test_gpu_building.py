"""What is compiled for a GPU: CUDA extensions once for all ranks, and the reference by torch.compile."""

from collections.abc import Iterator

import pytest

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.platforms import load_platforms
from pkb.problems.suite import load_problem
from pkb.record import Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor

lacking = load_platforms()["shared-gpu"].find_missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(lacking is not None, reason=f"no shared GPU here: {lacking}")]

RIGOR = Rigor("few", 4, 2.0, least_pairs=4, calls_per_block=4, most_pairs=4, checked_blocks=2)
EXTENSION = r"""
import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load_inline

SOURCE = '''
#include <c10/cuda/CUDAStream.h>

__global__ void add(float *into, const float *from, long count) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < count) into[i] += from[i];
}

void add_to(torch::Tensor into, torch::Tensor from) {
    long count = into.numel();
    add<<<(count + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        into.data_ptr<float>(), from.data_ptr<float>(), count);
}
'''
adding = load_inline("adding", "void add_to(torch::Tensor, torch::Tensor);", SOURCE, functions=["add_to"])

def solution(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    for part in parts[1:]:
        adding.add_to(parts[0], part)
    return parts[0]
"""

# Torch's headers alone take a compiler half a minute.
BROKEN = """
from torch.utils.cpp_extension import load_inline

SOURCE = "__global__ void add(float *into, long count) { into[threadIdx.x] += nowhere[count]; }"
load_inline("adding", "", SOURCE, no_implicit_headers=True)

def solution(tensor):
    return tensor
"""


@pytest.fixture(scope="module")
def gpu() -> Iterator[Judge]:
    with Judge("shared-gpu", Limits(load_s=60, trial_s=60)) as judge:
        yield judge


def test_an_extension_is_built_once_and_found_again(gpu: Judge) -> None:
    setup = gpu.pose("allreduce", ProblemSettings(nproc=2, trials=1))
    built, found = (gpu.judge(setup, Candidate.of(EXTENSION.encode())) for _ in range(2))
    assert built.correct, built.reason
    assert found.correct, found.reason
    assert built.seconds["build"] > 0
    assert "build" not in found.seconds


def test_a_compilers_complaint_reaches_the_record(gpu: Judge) -> None:
    record = gpu.judge(gpu.pose("allreduce", ProblemSettings(nproc=2, trials=1)), Candidate.of(BROKEN.encode()))
    assert record.verdict is Verdict.BUILD_FAILED, record.reason
    assert '"nowhere" is undefined' in record.reason
    assert len(record.reason) < 2000


def test_compiled_references_are_timed_in_the_same_turns(gpu: Judge) -> None:
    problem = load_problem("gemm_allreduce")
    setup = gpu.pose(problem, ProblemSettings(nproc=2, size="paper", dtype="bfloat16", trials=1))
    baselines = ["compile-default", "compile-cudagraphs"]
    record = gpu.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR, baselines=baselines))
    assert record.correct, record.reason
    assert record.timing is not None
    assert {name for name, found in record.timing.baselines.items() if found.us} == set(baselines), (
        record.timing.baselines
    )
