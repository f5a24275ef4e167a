"""What the sections of a report are made of."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from pkb.analyse import Coverage, Row, Standing, find_coverage, list_timed_rows, make_leaderboard
from pkb.analyse.tables import OTHERS
from pkb.display import CPU_TIMES

INTERVALS = "95 % intervals by bootstrap over problems and samples, none for fewer than five problems"
Turns = dict[str, list[Row]]
"""By a sample's folder: a row for each of its turns."""


@dataclass(frozen=True)
class ReportData:
    """The latest record of each sample of some runs; of one suite, where a section gets it."""

    rows: list[Row]
    p: float = 1.0
    """A sample is fast if it is surely more than this many times as fast as the reference."""
    turns: Turns = field(default_factory=dict)

    @cached_property
    def runs(self) -> dict[str, list[Row]]:
        """The rows by run."""
        return group_by_run(self.rows)

    @cached_property
    def standings(self) -> list[Standing]:
        """The leaderboard: a line per run and category."""
        return make_leaderboard(self.rows, p=self.p)

    @cached_property
    def coverage(self) -> Coverage:
        """The problems that the runs share, on which they are compared."""
        return find_coverage(self.rows)

    @cached_property
    def compared_rows(self) -> list[Row]:
        """The rows of the problems that all ranked runs share; of runs that are not ranked, all rows."""
        return self.coverage.select(self.rows)

    def split_suites(self) -> dict[str, "ReportData"]:
        """Return the data of each suite, under a name for a section: figures of different suites never mix."""
        suites = list(dict.fromkeys(row.suite for row in self.rows))
        if len(suites) < 2:
            return {"": self}
        names: dict[str, ReportData] = {}
        for number, suite in enumerate(suites):
            word = re.sub(r"\W+", "_", suite)
            rows = [row for row in self.rows if row.suite == suite]
            folders = {row.folder for row in rows}
            turns = {folder: found for folder, found in self.turns.items() if folder in folders}
            names[word if word not in names else f"{word}_{number}"] = ReportData(rows, self.p, turns)
        return names

    @property
    def categories(self) -> list[str]:
        """All categories of the leaderboard, in the problems' order."""
        shown = {one.summary.category for one in self.standings}
        ordered = (row.category for row in sorted(self.rows, key=lambda row: row.number))
        return list(dict.fromkeys(category if category in shown else OTHERS for category in ordered))


@dataclass(frozen=True)
class ClockGroup:
    """A run's samples whose times may be compared with each other."""

    run: str
    comparable: bool
    """Whether the times may also be compared with those of other judgements: CPU times may not."""
    rows: list[Row]

    @property
    def clock(self) -> str:
        """What follows the run's name where times are labelled."""
        return "" if self.comparable else f" ({CPU_TIMES})"

    @property
    def label(self) -> str:
        return self.run + self.clock


def group_by_run(rows: Iterable[Row]) -> dict[str, list[Row]]:
    runs: dict[str, list[Row]] = {}
    for row in rows:
        runs.setdefault(row.run, []).append(row)
    return runs


def group_by_clock(rows: list[Row]) -> list[ClockGroup]:
    """Return the groups that have a time. CPU times are never in one group with others."""
    split = [
        ClockGroup(run, comparable, [row for row in found if row.comparable is comparable])
        for run, found in group_by_run(rows).items()
        for comparable in (True, False)
    ]
    return [group for group in split if list_timed_rows(group.rows)]
