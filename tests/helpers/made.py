"""Runs as a machine with GPUs would leave them: the records are made up, the files are the real ones."""

import random
from pathlib import Path
from typing import Any

from helpers.made_records import timing as make_timing
from pkb.problems.suite import find_suite, load_problem
from pkb.record import CandidateFacts, Environment, Evidence, Pace, Record, SetupFacts, Timing, Verdict
from pkb.report import Report
from pkb.runs import save_record
from pkb.speedup import compare_blocks, compute_block_times
from pkb.trial import Trial, TrialKind

WORLD, BLOCKS, CALLS = 4, 8, 5
CANDIDATE = '''"""Adds what the ranks hold."""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()  # never the argument itself
    dist.all_reduce(total)
    return total
'''
FAILURES = {
    "WRONG": (
        "rank 0, trial 0, call 0, output 0: 3 of 128 elements differ",
        Evidence("values", rank=0, trial=Trial(TrialKind.CHECK), details={"got": float("nan")}),
    ),
    "REJECTED": ("line 7: subprocess.run starts another process", Evidence("screen", details={"line": 7})),
    "BUILD_FAILED": (
        "rank 0 raised SyntaxError in load",
        Evidence(rank=0, traceback=["candidate.py:1 in <module>: def"]),
    ),
    "CRASH": (
        "rank 1 raised RuntimeError in trial 0",
        Evidence(rank=1, traceback=["candidate.py:7 in solution: total"]),
    ),
    "HANG": (
        "rank 0, 1 did not finish trial 0 within 3 s",
        Evidence(stacks={"0": ["solution, line 8 of candidate.py"]}),
    ),
    "CHEAT": ("a process was still running after the last call", Evidence("left-running")),
    "ENVIRONMENT": ("the nursery ended; judge it again", Evidence("nursery")),
}


def timing(speedup: float, light_us: float = 20.0, noise: float = 0.01, seed: int = 0) -> Timing:
    """Blocks whose ratios scatter around a speed-up, and what the judge makes of them."""
    draw = random.Random(seed)
    sides = {"reference": 5 * light_us, "candidate": 5 * light_us / speedup}
    spans = {
        side: [[[us * draw.gauss(1, noise) for _ in range(WORLD)] for _ in range(CALLS)] for _ in range(BLOCKS)]
        for side, us in sides.items()
    }
    ratio, interval, pace = compare_blocks(spans["reference"], spans["candidate"], spread=0.0)
    medians = {side: sorted(compute_block_times(found))[BLOCKS // 2] for side, found in spans.items()}
    percents = {side: 100 * light_us / us for side, us in medians.items()}
    return make_timing(
        medians, interval, pace, spans, speedup=ratio, roofline_us=light_us, percent_of_roofline=percents
    )


def add(
    run: Path,
    problem: str,
    sample: str,
    verdict: str = "CORRECT",
    timed: Timing | None = None,
    source: str = CANDIDATE,
    platform: str = "gpus",
    **changes: Any,
) -> Path:
    """One sample with its record."""
    reason, evidence = FAILURES.get(verdict, ("all 60 results right (5 trials x 3 calls x 4 ranks)", Evidence()))
    fields: dict[str, Any] = {
        "problem": problem,
        "category": load_problem(problem).category,
        "candidate": CandidateFacts(sample, "triton", "0" * 64),
        "setup": SetupFacts("bfloat16", WORLD, trials=5, calls=3, m=1024, n=1024),
        "verdict": Verdict(verdict),
        "reason": reason,
        "evidence": evidence,
        "pace": timed.pace if timed else Pace.UNTIMED,
        "timing": timed,
        "environment": Environment(platform, comparable_times=platform != "cpu", gpus=["H100"], torch="2.13.0"),
    }
    folder = run / problem / sample
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "logs" / "rank_0.txt").write_text("hello from rank 0\n")
    save_record(folder, Record(**(fields | changes)), source.encode())
    return folder


def make_run(run: Path, problems: list[str], samples: int = 3, seed: int = 0, gain: float = 1.0) -> Path:
    """Most of them right and timed, some of every failure."""
    draw = random.Random(seed)
    for problem in problems:
        for number in range(samples):
            failed = draw.random() < 0.3
            verdict = draw.choice(list(FAILURES)) if failed else "CORRECT"
            light_us = 10 ** draw.uniform(0.5, 3.5)
            times = None if failed else timing(gain * 2 ** draw.gauss(0.2, 0.8), light_us, seed=draw.randrange(1 << 30))
            add(run, problem, str(number + 1), verdict, times)
    return run


def page_of(*runs: Path) -> Path:
    """The page of a report on these runs."""
    return Report.of(list(runs)).write(runs[0] / "report", ["html"], find_suite("parallel"))[0]
