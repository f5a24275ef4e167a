"""Judge the shipped kernels for models at the published sizes, and time them against eager and compiled references.

    python benchmarks/kernelbench_gpu.py [--kernels 'L1_19*' 'L2_*'] [--baseline compile-default] [--dtype float32]

Before that, measure one judgement of L1/1 in a batch and from a cold shell: five trials and 100 timed calls.
Exit code 1 if a kernel is not CORRECT.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.record import Record
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings

SOLUTIONS = Path(__file__).parents[1] / "solutions" / "kernelbench" / "triton"
RIGOR = replace(RIGORS["quick"], least_pairs=13)
BATCH = 5
# Begins as `pkb eval` does, which has no option for 13 pairs of blocks.
COLD = """
from pkb.judge.worlds.prestart import start_nursery
start_nursery()
import runpy, sys
runpy.run_path(sys.argv[1])["print_first"]()
"""
HEAD = """| kernel | verdict | eager us | compiled us | kernel us | over eager | 95 % | over compiled | % of light |
|---|---|---:|---:|---:|---:|---|---:|---:|"""


def judge_first(judge: Judge) -> Record:
    kernel = Candidate.read(SOLUTIONS / "L1_1_Square_matrix_multiplication__triton.py")
    return judge.judge(
        judge.pose("L1/1", ProblemSettings(size="paper", trials=5)), kernel, JudgementSettings(rigor=RIGOR)
    )


def print_first() -> None:
    with Judge() as judge:
        record = judge_first(judge)
    print(record.verdict, record.pace)


def print_speed() -> None:
    with Judge() as judge:
        judge_first(judge)
        start = time.monotonic()
        for _ in range(BATCH):
            judge_first(judge)
        print(f"L1/1 in a batch, each: {(time.monotonic() - start) / BATCH:.1f} s (target 2.5)", flush=True)
    # By now all imports have been read from disk once.
    start = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", COLD, __file__], capture_output=True, text=True)
    seconds = time.monotonic() - start
    print(f"L1/1 from a cold shell: {seconds:.1f} s (target 8)  {(ran.stdout + ran.stderr).strip()}", flush=True)


def format_row(record: Record, baseline: str) -> str:
    name, t = record.candidate.name, record.timing
    if not t or not record.correct:
        return f"| {name} | {record.verdict} | {record.reason} | | | | | | |"
    compiled = t.baselines[baseline]
    us, over = (f"{compiled.us:.1f}", f"{compiled.speedup:.2f}") if compiled.us else ("failed", "")
    low, high = t.interval
    light = f"{t.percent_of_roofline['candidate']:.0f}" if t.percent_of_roofline else ""
    times = f"{t.reference_us:.1f} | {us} | {t.candidate_us:.1f}"
    return f"| {name} | {record.verdict} | {times} | {t.speedup:.2f} | {low:.2f}-{high:.2f} | {over} | {light} |"


def print_table(patterns: list[str], baseline: str, dtype: str) -> bool:
    """Print one row per kernel. Return whether all of them are correct."""
    print(HEAD)
    right = True
    with Judge() as judge:
        for path in sorted({path for pattern in patterns for path in SOLUTIONS.glob(f"{pattern}.py")}):
            setup = judge.pose(
                load_problem(path.stem.removesuffix("_triton")), ProblemSettings(size="paper", dtype=dtype, trials=2)
            )
            record = judge.judge(
                setup, Candidate.read(path), JudgementSettings(rigor=RIGORS["quick"], baselines=(baseline,))
            )
            print(format_row(record, baseline), flush=True)
            right = right and record.correct
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", nargs="+", default=["L*"])
    parser.add_argument("--baseline", default="compile-default")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    print_speed()
    sys.exit(0 if print_table(options.kernels, options.baseline, options.dtype) else 1)


if __name__ == "__main__":
    main()
