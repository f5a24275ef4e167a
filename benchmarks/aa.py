"""Time identical code against itself: the ratio that a fair clock measures is 1.00.

    python benchmarks/aa.py --size paper --dtype bfloat16
    python benchmarks/aa.py --m 4096 --n 4096

Every problem's own source is judged and timed as its own candidate. Prints each ratio with its interval, then the
worst distance from 1 and how many judgements said FASTER or SLOWER.
"""

import argparse
import time

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.problems.size import Size
from pkb.problems.suite import load_problem
from pkb.record import Pace
from pkb.settings import RIGORS, JudgementSettings, ProblemSettings

PROBLEMS = (1, 2, 7, 8, 12, 13, 16, 18, 20, 45, 52, 73)
WORLDS = (1, 2, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, nargs="+", default=PROBLEMS)
    parser.add_argument("--worlds", type=int, nargs="+", default=WORLDS)
    parser.add_argument("--size", default="paper")
    parser.add_argument("--m", type=int, help="with --n, in place of --size")
    parser.add_argument("--n", type=int)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rigor", default="paper", choices=RIGORS)
    parser.add_argument("--platform", default="auto")
    options = parser.parse_args()
    if (options.m is None) != (options.n is None):
        parser.error("give --m and --n together")
    size = options.size if options.m is None else Size(options.m, options.n)
    distances, misjudged = [], 0
    start = time.monotonic()
    with Judge(options.platform) as judge:
        for number in options.problems:
            for world in options.worlds:
                problem = load_problem(number)
                setup = judge.pose(problem, ProblemSettings(nproc=world, size=size, dtype=options.dtype, trials=1))
                record = judge.judge(
                    setup, Candidate.reference(problem), JudgementSettings(rigor=RIGORS[options.rigor])
                )
                if record.timing is None:
                    print(f"{problem.stem:40} W={world}  {record.verdict}: {record.reason}", flush=True)
                    misjudged += 1
                    continue
                t = record.timing
                low, high = t.interval
                distances.append(abs(t.speedup - 1))
                misjudged += record.pace is not Pace.TIE
                times = f"{t.reference_us:9.1f} {t.candidate_us:9.1f} us"
                control = f"control {t.control.ratio:.3f}" if t.control else "no control"
                seconds = sum(record.seconds.values())
                print(
                    f"{problem.stem:40} W={world}  {t.speedup:.3f} ({low:.3f}-{high:.3f}) {record.pace:6} {times}  "
                    f"{control}  {seconds:.1f} s",
                    flush=True,
                )
    total = len(options.problems) * len(options.worlds)
    print(
        f"{judge.platform.name}: {total} pairs of identical code in {time.monotonic() - start:.0f} s; "
        f"worst |ratio - 1| {max(distances, default=0):.3f}; not a TIE: {misjudged}"
    )


if __name__ == "__main__":
    main()
