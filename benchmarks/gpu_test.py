"""Run everything that needs a GPU, in less than ten minutes: `make gpu-test`.

Runs the tests marked gpu, judges and times every shipped kernel at 4 ranks, and times identical code against itself.
Prints a short table last; exit code 1 if a line of the table failed. --out keeps the records of the kernels.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.suite import load_problem
from pkb.record import Pace
from pkb.settings import RIGORS, JudgementSettings, Limits, ProblemSettings
from shipped_kernels import HEAD, format_row, judge_kernels, list_kernels

ROOT = Path(__file__).parents[1]
LIMITS = Limits(load_s=60, trial_s=20)
IDENTICAL = (1, 13, 45)
WORLDS = (1, 4)


@dataclass
class Line:
    what: str
    passed: bool
    seen: str
    seconds: float


def run_tests() -> Line:
    start = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-v", "-o", "addopts=", "--durations=12"]
    command += ["-m", "gpu", "tests/gpu", "tests/platforms"]
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as ran:
        for text in ran.stdout or ():
            print(text, end="", flush=True)
            last = text.strip() or last
    return Line("tests/gpu", ran.returncode == 0, last, time.monotonic() - start)


def time_kernels(judge: Judge, out: Path | None) -> list[Line]:
    """Time the kernels of problems that have one in CUDA and one in Triton; the tests judge the others at 2 ranks."""
    lines = []
    both = {stem for stem, _ in list_kernels(["cuda"])} & {stem for stem, _ in list_kernels(["triton"])}
    chosen = [kernel for kernel in list_kernels(["cuda", "triton"]) if kernel[0] in both]
    print(HEAD)
    for record in judge_kernels(judge, chosen, [4], "paper", "bfloat16", "quick", out):
        timing = record.timing
        seen = record.reason[:80] if not timing else f"{record.verdict} {record.pace} {timing.speedup:.2f}x"
        if timing and timing.percent_of_roofline:
            seen += f", {timing.percent_of_roofline['candidate']:.0f} % of light"
        name = f"{record.candidate.name}, {record.setup.world} ranks"
        lines.append(Line(name, record.correct, seen, sum(record.seconds.values())))
        print(format_row(record), flush=True)
    return lines


def time_identical_code(judge: Judge) -> Line:
    start = time.monotonic()
    ratios, ties = [], 0
    for number in IDENTICAL:
        for world in WORLDS:
            problem = load_problem(number)
            setup = judge.pose(problem, ProblemSettings(nproc=world, size="paper", dtype="bfloat16", trials=1))
            record = judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGORS["quick"]))
            ratios.append(record.timing.speedup if record.timing else float("nan"))
            ties += record.pace is Pace.TIE
    worst = max(abs(ratio - 1) for ratio in ratios)
    seen = f"worst |ratio - 1| {worst:.3f}, {ties} of {len(ratios)} a TIE"
    return Line("identical code, 1 and 4 ranks", ties == len(ratios), seen, time.monotonic() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    start = time.monotonic()
    lines = [run_tests()]
    with Judge(limits=LIMITS) as judge:
        if judge.platform.name == "cpu":
            sys.exit("no GPU platform here; `pkb doctor` says what is missing")
        lines += [*time_kernels(judge, options.out), time_identical_code(judge)]
    print()
    for line in lines:
        print(f"{'ok  ' if line.passed else 'FAIL'}  {line.what:48} {line.seen:60} {line.seconds:6.1f} s")
    failed = sum(not line.passed for line in lines)
    print(f"{len(lines) - failed} of {len(lines)} passed in {time.monotonic() - start:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
