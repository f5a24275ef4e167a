"""What the default checks cost: judgements with all of them, and with none that can be left out, taken in turns.

    python benchmarks/cost_of_checks.py

Left out in the plain ones: the static screen, the sandbox, the hidden size and the probe. Five trials of three calls,
4 ranks.
"""

import statistics
import time
from dataclasses import replace

from pkb.candidate import Candidate
from pkb.judge import Judge
from pkb.problem import Problem
from pkb.registry import problems

REPEATS = 3


def seconds(judge: Judge, problem: Problem, plain: bool) -> float:
    setup = judge.pose(problem, nproc=4)
    setup = replace(setup, extra=()) if plain else setup
    judge.references.get(setup, judge.nursery, judge.seeds)
    start = time.monotonic()
    record = judge.judge(setup, Candidate.reference(problem), screen=not plain)
    assert record.correct, record.reason
    return time.monotonic() - start


def main() -> None:
    ratios = []
    with Judge(sandbox="off") as plain, Judge() as full:
        for problem in problems()[:18]:
            pairs = [(seconds(full, problem, False), seconds(plain, problem, True)) for _ in range(REPEATS)]
            ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratios.append(ours / theirs)
            print(
                f"{problem.stem:32} all checks {ours:.2f} s, plain {theirs:.2f} s, ratio {ours / theirs:.2f}",
                flush=True,
            )
        level = full.sandbox.facts["level"]
    print(f"median ratio {statistics.median(ratios):.2f} (target 1.25), sandbox {level}, platform {full.platform.name}")


if __name__ == "__main__":
    main()
