"""In the scratch track a candidate does communication and products itself: other operators are allowed by a list."""

from collections import Counter
from collections.abc import Sequence

from pkb.checks import Breach, Check
from pkb.checks._operators import Kind, classify
from pkb.settings import Track

EXCHANGED_BYTES = "bytes exchanged on the host"
"""The bytes that a rank sent through stores and as objects, in the trial with the fewest of them."""
_MOST_EXCHANGED = 512
_NAMED = 5
_ADVICE = {
    Kind.COMMUNICATION: "move the data yourself, through symmetric memory",
    Kind.PRODUCT: "write it yourself",
    Kind.UNKNOWN: (
        "it is none of the operators that the track allows (allocation, views, copies, indexing, local reductions, "
        "scans, sorts, element-wise): write it yourself"
    ),
}


class LibraryCallCheck(Check):
    name = "library-call"
    report_type = dict[str, int]

    def report(self) -> dict[str, int]:
        return self.observer.list_library_calls()

    @staticmethod
    def conclude(reports: Sequence[dict[str, int]], track: Track) -> Breach | None:
        return (_find_barred_call(reports) or _find_exchange(reports)) if track is Track.SCRATCH else None


def _find_barred_call(reports: Sequence[dict[str, int]]) -> Breach | None:
    calls = sum_calls(reports)
    if not calls:
        return None
    names = ", ".join(list(calls)[:_NAMED]) + (f" and {len(calls) - _NAMED} others" if len(calls) > _NAMED else "")
    advice = _ADVICE[classify(next(iter(calls)))]
    return Breach(
        "CHEAT", f"called {names} in the scratch track; {advice}, or use --track any", details={"calls": calls}
    )


def _find_exchange(reports: Sequence[dict[str, int]]) -> Breach | None:
    for rank, report in enumerate(reports):
        if (count := report.get(EXCHANGED_BYTES, 0)) > _MOST_EXCHANGED:
            reason = (
                f"rank {rank} sent {count} bytes or more in every trial through a store or as objects, in the scratch "
                f"track, which allows {_MOST_EXCHANGED}; exchange handles once, and move data through symmetric memory"
            )
            return Breach("CHEAT", reason, rank)
    return None


def sum_calls(reports: Sequence[dict[str, int]]) -> dict[str, int]:
    """Return how often all ranks together called what the scratch track does not allow, products first."""
    calls: Counter[str] = Counter()
    for report in reports:
        calls.update({name: count for name, count in report.items() if _is_barred(name)})
    order = list(_ADVICE)
    return {name: calls[name] for name in sorted(calls, key=lambda name: (order.index(classify(name)), name))}


def _is_barred(name: str) -> bool:
    return name != EXCHANGED_BYTES and classify(name) is not Kind.ALLOWED


CHECK = LibraryCallCheck
