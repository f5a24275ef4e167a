"""What the sections of a report are made of."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from pkb.analyse import Row, Standing, list_timed_rows, make_leaderboard
from pkb.analyse.tables import OTHERS

INTERVALS = "95 % intervals by bootstrap over problems"
Turns = dict[str, list[Row]]
"""By a sample's folder: a row for each of its turns."""


@dataclass(frozen=True)
class ReportData:
    """The latest record of each sample of some runs."""

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
    def label(self) -> str:
        return self.run if self.comparable else f"{self.run} (CPU times)"


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
