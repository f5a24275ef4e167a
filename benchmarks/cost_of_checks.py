"""Measure what the default checks cost: judge with all checks, with as few as possible, and with one at a time.

    python benchmarks/cost_of_checks.py

A plain judgement has five trials of three calls on 4 ranks, each rank delayed once, with all results compared. The
kinds of judgement take turns. Checks that cannot be switched off are timed inside the judgements.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from pkb.candidate import Candidate
from pkb.judge import judgement
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import HIDDEN, PROBE
from pkb.problems.problem import Problem
from pkb.problems.suite import list_problems
from pkb.settings import JudgementSettings, ProblemSettings
from pkb.trial import Trial

REPEATS = 3
DRAWN_SIZES = 24
"""Hidden sizes to draw beforehand, among which all that a judge chooses from will be."""
PLAIN, ALL, ON_TIME = "plain", "all checks", "plain, without delays"


@dataclass(frozen=True)
class Kind:
    """A judgement with some of the checks."""

    locked: bool = False
    screen: bool = False
    extra: tuple[Trial, ...] = ()
    on_time: bool = False


KINDS = {
    PLAIN: Kind(),
    ALL: Kind(locked=True, screen=True, extra=(HIDDEN, PROBE)),
    "static screen": Kind(screen=True),
    "sandbox": Kind(locked=True),
    "hidden size": Kind(extra=(HIDDEN,)),
    "probe": Kind(extra=(PROBE,)),
    ON_TIME: Kind(on_time=True),
}
INSIDE = {"check_conduct": "the candidate's conduct", "check_first_result": "earlier results compared again"}


class Bench:
    def __init__(self, free: Judge, locked: Judge):
        self.judges = {False: free, True: locked}
        self.inside: dict[str, list[float]] = {name: [] for name in INSIDE}

    def time_judgement(self, problem: Problem, kind: Kind) -> float:
        judge = self.judges[kind.locked]
        setup = replace(judge.pose(problem, ProblemSettings(nproc=4)), extra=kind.extra)
        for number in range(DRAWN_SIZES):
            judge.references.get(setup.draw_hidden_size(judge.seeds, number), judge.pool, judge.seeds)
        with patch.object(type(judge.platform), "longest_delay_s", 0.0) if kind.on_time else self._time_checks():
            start = time.monotonic()
            record = judge.judge(setup, Candidate.reference(problem), JudgementSettings(screen=kind.screen))
        assert record.correct, record.reason
        return time.monotonic() - start

    @contextmanager
    def _time_checks(self) -> Iterator[None]:
        def wrap(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any) -> Any:
                start = time.monotonic()
                try:
                    return original(*args)
                finally:
                    self.inside[name].append(time.monotonic() - start)

            return call

        replaced: Any = {name: wrap(name, getattr(judgement, name)) for name in INSIDE}
        with patch.multiple(judgement, **replaced):
            yield


def compute_ratios(bench: Bench, problem: Problem) -> dict[str, float]:
    taken = [{kind: bench.time_judgement(problem, wanted) for kind, wanted in KINDS.items()} for _ in range(REPEATS)]
    median = {kind: statistics.median(each[kind] for each in taken) for kind in KINDS}
    print(f"{problem.stem:32} plain {median[PLAIN]:.2f} s, all checks {median[ALL]:.2f} s", flush=True)
    return {kind: median[kind] / median[PLAIN] for kind in KINDS} | {"seconds": median[PLAIN]}


def main() -> None:
    with Judge(sandbox="off") as free, Judge() as locked:
        bench = Bench(free, locked)
        found = [compute_ratios(bench, problem) for problem in list_problems()[:18]]
        level = locked.sandbox.facts.level
    typical = {kind: statistics.median(each[kind] for each in found) for kind in found[0]}
    print(f"\nmedians over {len(found)} problems, platform {free.platform.name}, sandbox {level}")
    print("| check | on top of a plain judgement |\n|---|---:|")
    for kind in KINDS:
        if kind not in (PLAIN, ALL, ON_TIME):
            print(f"| {kind} | {typical[kind] - 1:+.0%} |")
    for name, words in INSIDE.items():
        print(f"| {words} (in every judgement) | {statistics.median(bench.inside[name]) / typical['seconds']:.1%} |")
    print(f"| delayed ranks (in every judgement) | {1 - typical[ON_TIME]:.0%} |")
    print(f"| all together | {typical[ALL] - 1:+.0%} (target +35 %) |")


if __name__ == "__main__":
    main()
