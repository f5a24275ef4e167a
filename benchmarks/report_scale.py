"""Measure whether the data of a report on 100 000 records is ready in 10 s and 1 GB.

    python benchmarks/report_scale.py [FOLDER]

FOLDER keeps the records (1.3 GB) for the next run.
"""

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pkb.analyse import compare_runs, compute_fast_p_curve, count_failures, make_leaderboard, read_rows
from pkb.base.atomic import write_whole
from pkb.record import CandidateFacts, Environment, Evidence, Pace, Record, SetupFacts, Timing, Verdict
from pkb.runs import RECORD, Run

RUNS, RECORDS = 20, 5000
PROBLEMS, CATEGORIES = 87, 12
WORLD, BLOCKS, CALLS = 4, 8, 8
VERDICTS = {"CORRECT": 50, "WRONG": 20, "BUILD_FAILED": 15, "CRASH": 10, "ENVIRONMENT": 5}


def make_runs(folder: Path) -> list[Path]:
    """Make runs with records as large as real ones, half of them correct and timed."""
    runs = [folder / f"run_{number}" for number in range(RUNS)]
    for number, run in enumerate(runs):
        if not run.exists():
            _make_run(Run(run), random.Random(number))
    return runs


def _make_run(run: Run, chance: random.Random) -> None:
    for number in range(RECORDS):
        problem = number % PROBLEMS + 1
        record = _make_record(f"{problem}_problem", f"Category {problem % CATEGORIES}", chance)
        write_whole(run.folder / record.problem / str(number) / RECORD, record.to_json())
    run.update_facts(model=f"model {run.name}")


def _make_record(problem: str, category: str, chance: random.Random) -> Record:
    verdict = Verdict(chance.choices(list(VERDICTS), list(VERDICTS.values()))[0])
    right = verdict is Verdict.CORRECT
    return Record(
        problem=problem,
        category=category,
        candidate=CandidateFacts("candidate", "triton", "0" * 64),
        setup=SetupFacts("bfloat16", WORLD, trials=5, calls=3, m=1024, n=1024),
        verdict=verdict,
        reason="all 60 results right" if right else "rank 0, trial 0, call 0: " + "what went wrong " * 10,
        evidence=Evidence() if right else Evidence(chance.choice(["values", "shape", "load"]), log="a line\n" * 50),
        pace=Pace.TIE if right else Pace.UNTIMED,
        timing=_make_timing(chance) if right else None,
        environment=Environment("gpus", comparable_times=True, gpus=["NVIDIA H100"], torch="2.13.0"),
        seconds={"reference": 1.0, "candidate": 2.0},
    )


def _make_timing(chance: random.Random) -> Timing:
    factor = chance.lognormvariate(0, 0.5)
    us = {"reference": 100.0, "candidate": 100.0 / factor}
    return Timing(
        method="gpus: alternating blocks",
        rigor="quick",
        reference_us=us["reference"],
        candidate_us=us["candidate"],
        speedup=factor,
        interval=(0.97 * factor, 1.03 * factor),
        spread=0.01,
        pace=Pace.TIE,
        skew_us=us,
        queued=us,
        calls_per_block=CALLS,
        warm_up_calls={"reference": 20, "candidate": 20},
        cache="cold",
        roofline_us=10.0,
        percent_of_roofline={"reference": 10.0, "candidate": 10.0 * factor},
        control=None,
        judge_clock_us=us,
        checked_calls=4,
        clocks={"before": dict(us), "after": dict(us)},
        baselines={},
        blocks_us={world: _make_spans(value, chance) for world, value in us.items()},
    )


def _make_spans(us: float, chance: random.Random) -> list[list[list[float]]]:
    return [[[us * chance.uniform(0.9, 1.1) for _ in range(WORLD)] for _ in range(CALLS)] for _ in range(BLOCKS)]


def time_work(what: str, work: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = work()
    print(f"{what}: {time.perf_counter() - start:.2f} s", flush=True)
    return result


def measure(runs: list[str]) -> None:
    """Time all that the tables of a report need."""
    found = time_work("rows", lambda: read_rows(runs)).rows
    time_work("leaderboard", lambda: make_leaderboard(found))
    time_work("fast_p at 41 speeds", lambda: compute_fast_p_curve(found, [step / 10 for step in range(41)]))
    time_work("failures", lambda: count_failures(found))
    one, other = ([row for row in found if row.run == name] for name in ("run_0", "run_1"))
    time_work("two runs compared", lambda: compare_runs(one, other))
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = spent.ru_utime + spent.ru_stime
    print(f"{len(found)} records: {seconds:.1f} s of one core, {spent.ru_maxrss / 2**10:.0f} MiB at most", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2:])
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = time_work("made", lambda: make_runs(Path(sys.argv[1] if len(sys.argv) > 1 else folder)))
        # In a process of its own: making the records counts neither as time nor as memory.
        time_work("all", lambda: subprocess.run([sys.executable, __file__, "--measure", *map(str, runs)], check=True))


if __name__ == "__main__":
    main()
