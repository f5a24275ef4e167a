"""How long a judgement takes on a GPU, from a cold shell and in a batch.

    python benchmarks/gpu_speed.py

20 references in one batch, on one rank: five trials, 500 calls to warm up, 100 timed ones. Then one Triton candidate in
the same way from a cold shell. Then what is compiled: a shipped CUDA source by NVRTC, in a process of its own, and a
`load_inline` candidate that the cache knows.
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


def cold() -> float:
    command = [sys.executable, "-m", "pkb", "eval", "1", "--candidate", str(KERNEL), "--nproc", "1", "--size", "paper"]
    start = time.monotonic()
    ran = subprocess.run([*command, "--measure-perf", "--rigor", "paper"], capture_output=True, text=True)
    seconds = time.monotonic() - start
    print(ran.stdout.strip().splitlines()[0], ran.stderr.strip()[-500:])
    return seconds


def batch() -> float:
    start = time.monotonic()
    with Judge() as judge:
        for problem in list_problems()[:BATCH]:
            setup = judge.pose(problem, ProblemSettings(nproc=1, size="paper", dtype="bfloat16"))
            record = judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGORS["paper"]))
            fault = "" if record.correct else record.reason
            seconds = sum(record.seconds.values())
            print(f"{problem.stem}  {record.verdict}  {record.pace}  {seconds:.1f} s  {fault}", flush=True)
    return (time.monotonic() - start) / BATCH


def by_nvrtc() -> float:
    command = [sys.executable, "-c", BY_NVRTC, str(ROOT / "solutions" / "cuda" / "1_allreduce_cuda.py")]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def inline() -> tuple[float, float]:
    """Seconds to build a candidate, and what its judgement takes longer than that of a plain one once it is built."""
    ours, plain = Candidate.of(INLINE.encode()), Candidate.of(PLAIN.encode())
    with Judge() as judge:
        setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
        built = judge.judge(setup, ours)
        assert built.correct, built.reason
        records = [(judge.judge(setup, ours), judge.judge(setup, plain)) for _ in range(REPEATS)]
    longer = [cached.seconds["candidate"] - other.seconds["candidate"] for cached, other in records]
    return built.seconds["build"], statistics.median(longer)


def main() -> None:
    print(f"{BATCH} problems in a batch, each: {batch():.1f} s (target 4)")
    # What is imported has been read from disk by now.
    print(f"one Triton candidate, one rank, 5 trials, 500 + 100 calls, cold: {cold():.1f} s (target 12)")
    print(f"two kernels by NVRTC: {by_nvrtc():.2f} s (target 1)")
    print("a load_inline candidate: {:.1f} s to build, {:.2f} s once the cache has it (target 0.5)".format(*inline()))


if __name__ == "__main__":
    main()
