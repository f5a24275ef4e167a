"""Measure how long a judgement takes on a GPU, from a cold shell and in a batch.

    python benchmarks/gpu_speed.py

20 references in one batch, on one rank: five trials, 500 warm-up and 100 timed calls. Then one Triton candidate with
the same settings from a cold shell. Then compilation: a shipped CUDA source by NVRTC in a process of its own, and a
`load_inline` candidate that is in the build cache.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import list_problems
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings

ROOT = Path(__file__).parents[1]
KERNEL = ROOT / "solutions" / "triton" / "1_allreduce_triton.py"
BATCH, REPEATS = 20, 5
BY_NVRTC = """
import runpy, sys, time, torch
from pkb.cuda_lib import compile
source = runpy.run_path(sys.argv[1])["SOURCE"]
torch.zeros(1, device="cuda")
start = time.monotonic()
compile(source, "one_shot", "two_shot", options=["-DWORLD=4"], dtype=torch.bfloat16)
print(time.monotonic() - start)
"""
INLINE = """
import torch
from torch.utils.cpp_extension import load_inline

CUDA = '''
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
__global__ void copy(const float *from, float *to, long count) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[i];
}
torch::Tensor copied(torch::Tensor from) {
    auto to = torch::empty_like(from);
    copy<<<(from.numel() + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        from.data_ptr<float>(), to.data_ptr<float>(), from.numel());
    return to;
}
'''
module = load_inline("copying", "torch::Tensor copied(torch::Tensor);", CUDA, functions=["copied"])

def solution(tensor):
    return module.copied(tensor)
"""
PLAIN = "def solution(tensor):\n    return tensor.clone()\n"


def time_cold_shell() -> float:
    command = [sys.executable, "-m", "pkb", "eval", "1", "--candidate", str(KERNEL), "--nproc", "1", "--size", "paper"]
    start = time.monotonic()
    ran = subprocess.run([*command, "--measure-perf", "--rigor", "paper"], capture_output=True, text=True)
    seconds = time.monotonic() - start
    print(ran.stdout.strip().splitlines()[0], ran.stderr.strip()[-500:])
    return seconds


def time_batch() -> float:
    start = time.monotonic()
    with Judge() as judge:
        for problem in list_problems()[:BATCH]:
            setup = judge.pose(problem, ProblemSettings(nproc=1, size="paper", dtype="bfloat16"))
            record = judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGORS["paper"]))
            fault = "" if record.correct else record.reason
            seconds = sum(record.seconds.values())
            print(f"{problem.stem}  {record.verdict}  {record.pace}  {seconds:.1f} s  {fault}", flush=True)
    return (time.monotonic() - start) / BATCH


def time_nvrtc() -> float:
    command = [sys.executable, "-c", BY_NVRTC, str(ROOT / "solutions" / "cuda" / "1_allreduce_cuda.py")]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def time_inline() -> tuple[float, float]:
    """Return the seconds to build a candidate, and how much longer its judgement takes than a plain one when cached."""
    ours, plain = Candidate.of(INLINE.encode()), Candidate.of(PLAIN.encode())
    with Judge() as judge:
        setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
        built = judge.judge(setup, ours)
        assert built.correct, built.reason
        records = [(judge.judge(setup, ours), judge.judge(setup, plain)) for _ in range(REPEATS)]
    longer = [cached.seconds["candidate"] - other.seconds["candidate"] for cached, other in records]
    return built.seconds["build"], statistics.median(longer)


def main() -> None:
    print(f"{BATCH} problems in a batch, each: {time_batch():.1f} s (target 4)")
    # By now all imports have been read from disk once.
    print(f"one Triton candidate, one rank, 5 trials, 500 + 100 calls, cold: {time_cold_shell():.1f} s (target 12)")
    print(f"two kernels by NVRTC: {time_nvrtc():.2f} s (target 1)")
    print("a load_inline candidate: {:.1f} s to build, {:.2f} s from the cache (target 0.5)".format(*time_inline()))


if __name__ == "__main__":
    main()
