"""Measure how long the suite `kernelbench` takes at its tiny sizes, each reference as its own candidate.

python benchmarks/kernelbench_speed.py [PROBLEMS] [--jobs 2] [--suite kernelbench]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pkb.problems.suite import find_suite


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="?", default="level1,level2,level3")
    parser.add_argument("--jobs", type=int, default=2, help="number of judges that run in parallel")
    parser.add_argument("--suite", default="kernelbench")
    wanted = parser.parse_args()
    stems = [problem.stem for problem in find_suite(wanted.suite).select(wanted.problems)]
    start = time.monotonic()
    # Neighbouring problems are alike, so each judge gets every n-th problem: the slow ones are spread.
    parts = [stems[job :: wanted.jobs] for job in range(wanted.jobs)]
    with ThreadPoolExecutor(wanted.jobs) as pool:
        records = [
            record for part in pool.map(lambda part: _judge_references(part, wanted.suite), parts) for record in part
        ]
    seconds = time.monotonic() - start
    slowest = sorted(records, key=_sum_seconds)[-5:]
    wrong = [f"{record['problem']}: {record['verdict']}" for record in records if record["verdict"] != "CORRECT"]
    print(f"{len(records)} of {len(stems)} judged in {seconds:.0f} s, {seconds / len(records):.2f} s each")
    print(f"on {os.cpu_count()} cores with {wanted.jobs} judges in parallel, on the platform cpu")
    print("slowest:", ", ".join(f"{record['problem']} {_sum_seconds(record):.1f} s" for record in reversed(slowest)))
    print("not correct:", ", ".join(wrong) or "none")


def _judge_references(stems: list[str], suite: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "pkb", "eval", ",".join(stems), "--suite", suite, "--candidate", "reference"]
    done = subprocess.run([*command, "--platform", "cpu", "--json"], stdout=subprocess.PIPE, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _sum_seconds(record: dict[str, object]) -> float:
    phases = record["seconds"]
    assert isinstance(phases, dict)
    return float(sum(phases.values()))


if __name__ == "__main__":
    main()
