"""The tables of a report, as data."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pkb.analyse.coverage import find_coverage
from pkb.analyse.estimates import Estimate, estimate_geometric_mean, estimate_median
from pkb.analyse.metrics import count_correct, count_fast, estimate_at_k
from pkb.record import Pace, Verdict
from pkb.row import Row

ALL = "all"
"""The category of the line over all categories."""
OTHERS = "other categories"
"""The category of the line over all that have none of their own."""
_MOST_CATEGORIES = 100
"""The most categories with a line of their own: each takes several bootstraps."""
KS = (1, 3)


@dataclass(frozen=True)
class Summary:
    """How samples fared in one category."""

    category: str
    problems: int
    samples: int
    """The samples that count: neither of verdict ENVIRONMENT nor of a degenerate problem."""
    left_out: int
    """The samples of verdict ENVIRONMENT."""
    degenerate: int
    """The samples of problems that count for nothing."""
    correct: int
    timed: int
    """The samples that are right and have a time."""
    pass_at: dict[int, Estimate | None]
    """pass@k by k; None where no problem has k samples."""
    fast_at: dict[int, Estimate | None]
    """fast_p@k by k; None also where nothing was timed."""
    geometric_mean: Estimate | None
    """The speed-up of the samples that are right and timed."""
    median: Estimate | None


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard."""

    run: str
    model: str
    backend: str
    inputs: str
    """For KernelBench's tasks and checkouts of ParallelKernelBench: sound or published."""
    suite: str
    ranked: bool
    """Whether the summary is over the problems that all ranked runs share; else it is over the run's own."""
    covered: int
    """The number of problems that the run has samples of."""
    known: int
    """The number of problems that any run of the suite has samples of."""
    summary: Summary


@dataclass(frozen=True)
class FailureCount:
    verdict: str
    count: int
    share: float | None
    """The share of the samples that count; None for ENVIRONMENT, which does not."""
    checks: dict[str, int]
    """By the check that failed, most frequent first."""


def make_leaderboard(
    rows: Iterable[Row], ks: Sequence[int] = KS, p: float = 1.0, plain: bool = False
) -> list[Standing]:
    """Return a line per suite, run and category, each run's line over all categories last.

    Runs are compared on the problems that they share (`pkb.analyse.coverage`). CPU times do not enter.
    """
    suites: dict[str, list[Row]] = {}
    for row in rows:
        suites.setdefault(row.suite, []).append(row if row.comparable else _drop_times(row))
    return [standing for found in suites.values() for standing in _rank_suite(found, ks, p, plain)]


def _rank_suite(rows: list[Row], ks: Sequence[int], p: float, plain: bool) -> Iterator[Standing]:
    coverage = find_coverage(rows)
    runs: dict[str, list[Row]] = {run: [] for run in coverage.by_run}
    for row in coverage.select(rows):
        runs[row.run].append(row)
    first = {row.run: row for row in reversed(rows)}
    for run, found in runs.items():
        backend = "+".join(sorted({row.backend for row in found}))
        place = (first[run].model, backend, first[run].inputs, first[run].suite, run in coverage.ranked)
        counts = (len(coverage.by_run[run]), len(coverage.problems))
        yield from (Standing(run, *place, *counts, one) for one in summarise_by_category(found, ks, p, plain))


def summarise_by_category(
    rows: Iterable[Row], ks: Sequence[int] = KS, p: float = 1.0, plain: bool = False
) -> list[Summary]:
    """Return a summary per category, in the problems' order, and one over all of them."""
    found = sorted(rows, key=lambda row: row.number)
    categories: dict[str, list[Row]] = {}
    for row in found:
        known = row.category in categories or len(categories) < _MOST_CATEGORIES
        categories.setdefault(row.category if known else OTHERS, []).append(row)
    return [summarise(name, part, ks, p, plain) for name, part in [*categories.items(), (ALL, found)]]


def summarise(name: str, rows: Sequence[Row], ks: Sequence[int], p: float, plain: bool) -> Summary:
    """Return the summary of these samples under the name of a category."""
    right, fast = count_correct(rows), count_fast(rows, p, plain)
    timed = list_timed_rows(rows)
    speeds: dict[str, list[float]] = {}
    for row in timed:
        speeds.setdefault(row.problem, []).append(row.speedup or 0.0)
    counted, degenerate = sum(tally.n for tally in right.values()), sum(bool(row.degenerate) for row in rows)
    return Summary(
        category=name,
        problems=len(right),
        samples=counted,
        left_out=len(rows) - degenerate - counted,
        degenerate=degenerate,
        correct=sum(tally.good for tally in right.values()),
        timed=len(timed),
        pass_at={k: estimate_at_k(right, k) for k in ks},
        fast_at={k: estimate_at_k(fast, k) if timed or p <= 0 else None for k in ks},
        geometric_mean=estimate_geometric_mean(speeds),
        median=estimate_median(speeds),
    )


def list_timed_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the samples that count, are right and have a time, fastest first."""
    timed = [row for row in rows if row.correct and row.counts and row.speedup is not None]
    return sorted(timed, key=lambda row: -(row.speedup or 0.0))


def count_failures(rows: Iterable[Row]) -> list[FailureCount]:
    """Return the counts of all verdicts but CORRECT, highest first, ENVIRONMENT last, without degenerate problems."""
    found = [row for row in rows if not row.degenerate]
    counted = sum(row.counts for row in found)
    wrong = [row for row in found if not row.correct]
    verdicts = Counter(row.verdict for row in wrong)
    checks = {verdict: Counter(row.check or "" for row in wrong if row.verdict == verdict) for verdict in verdicts}
    lines = [
        FailureCount(
            verdict,
            count,
            None if verdict == Verdict.ENVIRONMENT else count / counted,
            dict(checks[verdict].most_common()),
        )
        for verdict, count in verdicts.most_common()
    ]
    return sorted(lines, key=lambda line: line.share is None)


def _drop_times(row: Row) -> Row:
    return replace(row, pace=Pace.UNTIMED.value, speedup=None, low=None, high=None)
