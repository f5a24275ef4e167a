"""Runs as a machine with GPUs would leave them: the records are made up, the files are the real ones."""

import random
from pathlib import Path
from typing import Any

from pkb.problems.suite import find_suite, load_problem
from pkb.record import Pace, Record, Verdict
from pkb.report import Report
from pkb.runs import keep
from pkb.speedup import block_times, compared

WORLD, BLOCKS, CALLS = 4, 8, 5
CANDIDATE = '''"""Adds what the ranks hold."""

import torch.distributed as dist


def solution(tensor):
    total = tensor.clone()  # never the argument itself
    dist.all_reduce(total)
    return total
'''
FAILURES: dict[str, tuple[str, dict[str, Any]]] = {
    "WRONG": ("rank 0, trial 0, call 0, output 0: 3 of 128 elements differ", {"check": "values", "got": float("nan")}),
    "REJECTED": ("line 7: subprocess.run starts another process", {"check": "screen", "line": 7}),
    "BUILD_FAILED": ("rank 0 raised SyntaxError in load", {"traceback": ["candidate.py:1 in <module>: def"]}),
    "CRASH": ("rank 1 raised RuntimeError in trial 0", {"rank": 1, "traceback": ["candidate.py:7 in solution: total"]}),
    "HANG": ("rank 0, 1 did not finish trial 0 within 3 s", {"stacks": {"0": ["solution, line 8 of candidate.py"]}}),
    "CHEAT": ("a process was still running after the last call", {"check": "left-running"}),
    "ENVIRONMENT": ("the nursery ended; judge it again", {"check": "nursery"}),
}


def timing(speedup: float, light_us: float = 20.0, noise: float = 0.01, seed: int = 0) -> dict[str, Any]:
    """Blocks whose ratios scatter around a speed-up, and what the judge makes of them."""
    draw = random.Random(seed)
    sides = {"reference": 5 * light_us, "candidate": 5 * light_us / speedup}
    spans = {
        side: [[[us * draw.gauss(1, noise) for _ in range(WORLD)] for _ in range(CALLS)] for _ in range(BLOCKS)]
        for side, us in sides.items()
    }
    ratio, interval, pace = compared(spans["reference"], spans["candidate"], spread=0.0)
    medians = {side: sorted(block_times(found))[BLOCKS // 2] for side, found in spans.items()}
    return {
        "method": "gpus: made up",
        "reference_us": medians["reference"],
        "candidate_us": medians["candidate"],
        "speedup": ratio,
        "interval": interval,
        "pace": pace,
        "roofline_us": light_us,
        "percent_of_roofline": {side: 100 * light_us / us for side, us in medians.items()},
        "blocks_us": spans,
    }


def add(
    run: Path,
    problem: str,
    sample: str,
    verdict: str = "CORRECT",
    timed: dict[str, Any] | None = None,
    source: str = CANDIDATE,
    platform: str = "gpus",
    **changes: Any,
) -> Path:
    """One sample with its record."""
    reason, evidence = FAILURES.get(verdict, ("all 60 results right (5 trials x 3 calls x 4 ranks)", {}))
    fields: dict[str, Any] = {
        "problem": problem,
        "category": load_problem(problem).category,
        "candidate": {"name": sample, "backend": "triton", "sha256": "0" * 64},
        "setup": {"m": 1024, "n": 1024, "dtype": "bfloat16", "world": WORLD, "trials": 5, "calls": 3},
        "verdict": Verdict(verdict),
        "reason": reason,
        "evidence": evidence,
        "pace": timed["pace"] if timed else Pace.UNTIMED,
        "timing": timed,
        "environment": {"platform": platform, "gpu": "H100", "torch": "2.13.0"},
    }
    folder = run / problem / sample
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "logs" / "rank_0.txt").write_text("hello from rank 0\n")
    keep(folder, Record(**(fields | changes)), source.encode())
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
