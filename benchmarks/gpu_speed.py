"""How long a judgement takes on a GPU, from a cold shell and in a batch.

    python benchmarks/gpu_speed.py

One Triton candidate on one rank: five trials, 500 calls to warm up, 100 timed ones. Then 20 references in one batch
in the same way.
"""

import subprocess
import sys
import time
from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge import Judge
from pkb.judge.rigor import RIGORS
from pkb.registry import problems

ROOT = Path(__file__).parents[1]
KERNEL = ROOT / "solutions" / "triton" / "1_allreduce_triton.py"
BATCH = 20


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
        for problem in problems()[:BATCH]:
            setup = judge.pose(problem, nproc=1, size="paper", dtype="bfloat16")
            record = judge.judge(setup, Candidate.reference(problem), rigor=RIGORS["paper"])
            print(f"{problem.stem}  {record.verdict}  {record.pace}  {sum(record.seconds.values()):.1f} s", flush=True)
    return (time.monotonic() - start) / BATCH


def main() -> None:
    print(f"one Triton candidate, one rank, 5 trials, 500 + 100 calls, cold: {cold():.1f} s (target 12)")
    print(f"{BATCH} problems in a batch, each: {batch():.1f} s (target 4)")


if __name__ == "__main__":
    main()
