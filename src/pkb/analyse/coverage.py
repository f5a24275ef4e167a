"""Which problems runs have in common: figures of several runs are compared on those alone."""

from collections.abc import Iterable
from dataclasses import dataclass

from pkb.analyse.estimates import LEAST_PROBLEMS
from pkb.row import Row


@dataclass(frozen=True)
class Coverage:
    """The problems of some runs of one suite, as far as their samples count."""

    problems: frozenset[str]
    """The problems of any run."""
    by_run: dict[str, frozenset[str]]
    shared: frozenset[str]
    """The problems that all ranked runs have."""
    ranked: frozenset[str]
    """The runs that are compared. The others share too few problems with these."""

    def select(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows of shared problems, and of runs that are not ranked all rows. Rows that do not count stay."""
        return [row for row in rows if row.problem in self.shared or row.run not in self.ranked or not row.counts]

    def label(self, run: str) -> str:
        """Return a run's name for tables and charts of several runs."""
        return run if run in self.ranked else f"{run} (not ranked)"


def find_coverage(rows: Iterable[Row]) -> Coverage:
    """Return which runs can be compared, and on which problems.

    The run with most problems is ranked. Another one joins if the problems that all ranked runs share stay at least
    LEAST_PROBLEMS, or all of them where there are fewer: a run of one problem does not reduce others to it.
    """
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row.run, set()).update([row.problem] if row.counts else [])
    by_run = {run: frozenset(problems) for run, problems in found.items()}
    shared: frozenset[str] = max(by_run.values(), key=len, default=frozenset())
    ranked: set[str] = set()
    # Stable, so that of two equal runs the first one named comes first.
    for run in sorted(by_run, key=lambda run: -len(by_run[run])):
        common = shared & by_run[run]
        if len(common) >= min(LEAST_PROBLEMS, len(shared)) and common:
            shared = common
            ranked.add(run)
    return Coverage(frozenset().union(*by_run.values()), by_run, shared, frozenset(ranked))
