"""In the scratch track a candidate must not call library collectives, or products of a vendor's library."""

from collections import Counter
from collections.abc import Sequence

from pkb.checks import Breach, Check
from pkb.settings import Track

_ALLOWED_FROM_SCRATCH = ("dist.barrier", "c10d.barrier")
"""They order, and move no data."""


class LibraryCallCheck(Check):
    name = "library-call"
    report_type = dict[str, int]

    def report(self) -> dict[str, int]:
        return dict(self.observer.library_calls)

    @staticmethod
    def conclude(reports: Sequence[dict[str, int]], track: Track) -> Breach | None:
        barred = sorted(name for name in sum_calls(reports) if name not in _ALLOWED_FROM_SCRATCH)
        if track is not Track.SCRATCH or not barred:
            return None
        names = ", ".join(barred)
        return Breach("CHEAT", f"called {names} in the scratch track; write it yourself, or use --track any")


def sum_calls(reports: Sequence[dict[str, int]]) -> dict[str, int]:
    """Return how often each library function was called on all ranks together."""
    calls: Counter[str] = Counter()
    for report in reports:
        calls.update(report)
    return dict(calls)


CHECK = LibraryCallCheck
