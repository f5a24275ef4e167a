"""Measure whether the page of a report on 1000 samples opens in 2 s. Needs Chromium.

python benchmarks/report_page.py
"""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import report_scale
from pkb.problems.suite import find_suite
from pkb.report import Report
from pkb.runs import SOURCE, Run

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from helpers.chromium import Chromium  # type: ignore[import-not-found]

RUNS, SAMPLES, TIMES = 2, 500, 7
SOLUTIONS = Path(__file__).parents[1] / "solutions"


def make_runs(folder: Path) -> list[Path]:
    """Make runs with records as large as real ones, and with shipped kernels as candidates."""
    report_scale.RUNS, report_scale.RECORDS = RUNS, SAMPLES
    runs = report_scale.make_runs(folder)
    chance, kernels = random.Random(0), sorted(SOLUTIONS.rglob("*.py"))
    for run in runs:
        for sample in Run(run).list_samples():
            (sample.folder / SOURCE).write_bytes(chance.choice(kernels).read_bytes())
    return runs


def time_opening(browser: Chromium, page: Path) -> float:
    """Return the milliseconds from the navigation to the first paint of the whole page, by the browser's own clock."""
    browser.open(page)
    return float(browser.until("document.documentElement.dataset.ready"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        runs = make_runs(Path(folder))
        start = time.perf_counter()
        (page,) = Report.of(runs).write(Path(folder) / "report", ["html"], find_suite("parallel"))
        seconds, size = time.perf_counter() - start, page.stat().st_size / 2**20
        print(f"{RUNS * SAMPLES} samples written in {seconds:.1f} s, {size:.1f} MiB")
        found = [time_opening(browser, page) for _ in range(TIMES)]
        print(f"opened {TIMES} times: median {statistics.median(found):.0f} ms, slowest {max(found):.0f} ms")


if __name__ == "__main__":
    main()
