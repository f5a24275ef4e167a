"""The tables of a report, as data."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pkb.analyse import bootstrap as estimate
from pkb.analyse.bootstrap import Estimate
from pkb.analyse.metrics import at_k, correct_tallies, fast_tallies
from pkb.analyse.rows import Row
from pkb.record import Pace, Verdict

ALL = "all"
"""The category of the line over all of them."""
KS = (1, 3)


@dataclass(frozen=True)
class Summary:
    """How samples fared in one category."""

    category: str
    problems: int
    samples: int
    """That count: without those of verdict ENVIRONMENT."""
    left_out: int
    """Of verdict ENVIRONMENT."""
    degenerate: int
    """Of problems that count for nothing: left out too."""
    correct: int
    timed: int
    """Right ones with a time."""
    pass_at: dict[int, Estimate | None]
    """By k; None where no problem has k samples."""
    fast_at: dict[int, Estimate | None]
    """By k, of fast_p; None also where nothing was timed."""
    geometric_mean: Estimate | None
    """Speed-up of the right ones that were timed."""
    median: Estimate | None


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard."""

    run: str
    model: str
    backend: str
    inputs: str
    """Of models: sound or published."""
    summary: Summary


@dataclass(frozen=True)
class Failures:
    verdict: str
    count: int
    share: float | None
    """Of the samples that count; None for ENVIRONMENT, which does not."""
    checks: dict[str, int]
    """By the check that failed, most frequent first."""


def leaderboard(rows: Iterable[Row], ks: Sequence[int] = KS, p: float = 1.0, plain: bool = False) -> list[Standing]:
    """Category by run, each run's line over all categories last. Times taken on CPUs do not enter it."""
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault(row.run, []).append(_untimed(row) if row.platform == "cpu" else row)
    return [standing for found in runs.values() for standing in _standings(found, ks, p, plain)]


def _standings(rows: list[Row], ks: Sequence[int], p: float, plain: bool) -> list[Standing]:
    backend = "+".join(sorted({row.backend for row in rows}))
    first = rows[0]
    return [Standing(first.run, first.model, backend, first.inputs, one) for one in by_category(rows, ks, p, plain)]


def by_category(rows: Iterable[Row], ks: Sequence[int] = KS, p: float = 1.0, plain: bool = False) -> list[Summary]:
    """A summary per category, in the problems' order, and one over all of them."""
    found = sorted(rows, key=lambda row: row.number)
    categories: dict[str, list[Row]] = {}
    for row in found:
        categories.setdefault(row.category, []).append(row)
    return [summary(name, part, ks, p, plain) for name, part in [*categories.items(), (ALL, found)]]


def summary(name: str, rows: Sequence[Row], ks: Sequence[int], p: float, plain: bool) -> Summary:
    right, fast = correct_tallies(rows), fast_tallies(rows, p, plain)
    timed = speedups(rows)
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
        pass_at={k: at_k(right, k) for k in ks},
        fast_at={k: at_k(fast, k) if timed or p <= 0 else None for k in ks},
        geometric_mean=estimate.geometric_mean(speeds),
        median=estimate.median(speeds),
    )


def speedups(rows: Iterable[Row]) -> list[Row]:
    """The right ones that were timed and count, fastest first."""
    timed = [row for row in rows if row.correct and row.counts and row.speedup is not None]
    return sorted(timed, key=lambda row: -(row.speedup or 0.0))


def failures(rows: Iterable[Row]) -> list[Failures]:
    """What went wrong how often, most frequent first; ENVIRONMENT last. Degenerate problems do not enter."""
    found = [row for row in rows if not row.degenerate]
    counted = sum(row.counts for row in found)
    wrong = [row for row in found if not row.correct]
    verdicts = Counter(row.verdict for row in wrong)
    checks = {verdict: Counter(row.check or "" for row in wrong if row.verdict == verdict) for verdict in verdicts}
    lines = [
        Failures(
            verdict,
            count,
            None if verdict == Verdict.ENVIRONMENT else count / counted,
            dict(checks[verdict].most_common()),
        )
        for verdict, count in verdicts.most_common()
    ]
    return sorted(lines, key=lambda line: line.share is None)


def _untimed(row: Row) -> Row:
    return replace(row, pace=Pace.UNTIMED.value, speedup=None, low=None, high=None)
