"""Whether the data of a report on 100 000 records is ready in 10 s and 1 GB.

python benchmarks/report_scale.py [FOLDER]    # records are made there, unless they are there already; 1.3 GB
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

from pkb.analyse import compared, failures, fast_p_curve, leaderboard, rows
from pkb.base.atomic import write_whole
from pkb.record import Pace, Record, Verdict
from pkb.runs import RECORD, Run

RUNS, RECORDS = 20, 5000
PROBLEMS, CATEGORIES = 87, 12
WORLD, BLOCKS, CALLS = 4, 8, 8
VERDICTS = {"CORRECT": 50, "WRONG": 20, "BUILD_FAILED": 15, "CRASH": 10, "ENVIRONMENT": 5}


def make(folder: Path) -> list[Path]:
    """Runs with records as large as real ones; half of them right and timed."""
    runs = [folder / f"run_{number}" for number in range(RUNS)]
    for number, run in enumerate(runs):
        if not run.exists():
            _make_run(Run(run), random.Random(number))
    return runs


def _make_run(run: Run, chance: random.Random) -> None:
    for number in range(RECORDS):
        problem = number % PROBLEMS + 1
        record = _record(f"{problem}_problem", f"Category {problem % CATEGORIES}", chance)
        write_whole(run.folder / record.problem / str(number) / RECORD, record.to_json())
    run.describe(model=f"model {run.name}")


def _record(problem: str, category: str, chance: random.Random) -> Record:
    verdict = Verdict(chance.choices(list(VERDICTS), list(VERDICTS.values()))[0])
    right = verdict is Verdict.CORRECT
    return Record(
        problem=problem,
        category=category,
        candidate={"name": "candidate", "backend": "triton", "sha256": "0" * 64},
        setup={"m": 1024, "n": 1024, "dtype": "bfloat16", "world": WORLD, "trials": 5, "calls": 3, "track": "any"},
        verdict=verdict,
        reason="all 60 results right" if right else "rank 0, trial 0, call 0: " + "what went wrong " * 10,
        evidence={} if right else {"check": chance.choice(["values", "shape", "load"]), "log": "a line\n" * 50},
        pace=Pace.TIE if right else Pace.UNTIMED,
        timing=_timing(chance) if right else None,
        environment={"platform": "gpus", "gpu": "NVIDIA H100", "torch": "2.13.0", "sandbox": {"level": "namespaces"}},
        seconds={"reference": 1.0, "candidate": 2.0},
    )


def _timing(chance: random.Random) -> dict[str, Any]:
    factor = chance.lognormvariate(0, 0.5)
    us = {"reference": 100.0, "candidate": 100.0 / factor}
    return {
        "method": "gpus: alternating blocks",
        "reference_us": us["reference"],
        "candidate_us": us["candidate"],
        "speedup": factor,
        "interval": [0.97 * factor, 1.03 * factor],
        "pace": "TIE",
        "roofline_us": 10.0,
        "percent_of_roofline": {"reference": 10.0, "candidate": 10.0 * factor},
        **dict.fromkeys(("skew_us", "queued", "warm_up_calls", "control", "outside_us", "clocks"), us),
        "blocks_us": {side: _spans(value, chance) for side, value in us.items()},
    }


def _spans(us: float, chance: random.Random) -> list[list[list[float]]]:
    return [[[us * chance.uniform(0.9, 1.1) for _ in range(WORLD)] for _ in range(CALLS)] for _ in range(BLOCKS)]


def timed(what: str, work: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = work()
    print(f"{what}: {time.perf_counter() - start:.2f} s", flush=True)
    return result


def measure(runs: list[str]) -> None:
    """All that the tables of a report need."""
    found = timed("rows", lambda: rows(runs)).rows
    timed("leaderboard", lambda: leaderboard(found))
    timed("fast_p at 41 speeds", lambda: fast_p_curve(found, [step / 10 for step in range(41)]))
    timed("failures", lambda: failures(found))
    one, other = ([row for row in found if row.run == name] for name in ("run_0", "run_1"))
    timed("two runs compared", lambda: compared(one, other))
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = spent.ru_utime + spent.ru_stime
    print(f"{len(found)} records: {seconds:.1f} s of one core, {spent.ru_maxrss / 2**10:.0f} MiB at most", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2:])
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = timed("made", lambda: make(Path(sys.argv[1] if len(sys.argv) > 1 else folder)))
        # In a process of its own: making the records counts neither as time nor as memory.
        timed("all", lambda: subprocess.run([sys.executable, __file__, "--measure", *map(str, runs)], check=True))


if __name__ == "__main__":
    main()
