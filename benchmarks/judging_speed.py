"""Measure how long a judgement takes: a cold `pkb eval`, and a batch over problems 1 to 18 with their own sources.

Run on an idle machine: python benchmarks/judging_speed.py
"""

import os
import platform
import statistics
import subprocess
import sys
import time

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import select_problems
from pkb.provenance import describe_environment
from pkb.settings import ProblemSettings

COLD_RUNS = 5


def time_cold_eval() -> float:
    """Return the seconds from the start of the command to its end."""
    start = time.monotonic()
    command = [sys.executable, "-m", "pkb", "eval", "1", "--candidate", "reference", "--nproc", "4"]
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - start


def time_batch(judge: Judge) -> list[float]:
    spans = []
    for problem in select_problems("1-18"):
        start = time.monotonic()
        record = judge.judge(judge.pose(problem, ProblemSettings(nproc=4)), Candidate.reference(problem))
        assert record.correct, record.reason
        spans.append(time.monotonic() - start)
    return spans


def main() -> None:
    with Judge("cpu") as judge:
        facts = describe_environment(judge.platform)
        print(f"{facts.cpu}, {os.cpu_count()} cores, {platform.platform()}, torch {facts.torch}")
        print(f"4 ranks, tiny, 5 trials, float32, load average {os.getloadavg()[0]:.1f}")
        spans = time_batch(judge)
    colds = [time_cold_eval() for _ in range(COLD_RUNS)]
    print(f"cold `pkb eval 1`: median {statistics.median(colds):.1f} s of {COLD_RUNS} (worst {max(colds):.1f} s)")
    mean, worst = statistics.mean(spans), max(spans)
    print(
        f"batch of {len(spans)} problems: {mean:.2f} s per problem on average (worst {worst:.2f} s, start-up included)"
    )


if __name__ == "__main__":
    main()
