"""In the scratch track a candidate does communication and products itself: other operators are allowed by a list."""

from collections import Counter
from collections.abc import Sequence

from pkb.checks import Breach, Check
from pkb.checks._operators import Kind, classify
from pkb.settings import Track

CALLS = "calls of the candidate"
"""Of these, a block of timed calls is one."""
EXCHANGING_CALLS = "calls in which data was exchanged on the host"
EXCHANGED_BYTES = "the most bytes that one call exchanged on the host"
_COUNTS = {CALLS, EXCHANGING_CALLS, EXCHANGED_BYTES}
_SET_UPS, _MOST_EXCHANGED = 4, 4096
"""Handles are exchanged at the posed size, at the hidden size, and where a buffer grows: data is in every call."""
_NAMED = 5
_ADVICE = {
    Kind.COMMUNICATION: "move the data yourself, through symmetric memory",
    Kind.PRODUCT: "write it yourself",
    Kind.NATIVE: (
        "by hand, call only libraries that the judge compiled from your source and those of the system and of CUDA's "
        "driver, runtime and NVRTC, each function by its name"
    ),
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
        calls, exchanging, most = (report.get(name, 0) for name in (CALLS, EXCHANGING_CALLS, EXCHANGED_BYTES))
        # One call at least must do without: in it, the candidate's own communication is judged.
        allowed = max(0, min(_SET_UPS, calls - 1))
        if exchanging > allowed:
            return Breach("CHEAT", _describe_exchange(rank, f"in {exchanging} calls", f"{allowed}"), rank)
        if most > _MOST_EXCHANGED:
            reason = _describe_exchange(rank, f"of {most} bytes in one call", f"{_MOST_EXCHANGED} bytes")
            return Breach("CHEAT", reason, rank)
    return None


def _describe_exchange(rank: int, much: str, allowed: str) -> str:
    return (
        f"rank {rank} exchanged data on the host {much}, through a store or as objects; the scratch track allows "
        f"{allowed}, for setting up: exchange handles once for each shape and keep them, move data through symmetric "
        "memory, and meet at its barrier or at dist.barrier()"
    )


def sum_calls(reports: Sequence[dict[str, int]]) -> dict[str, int]:
    """Return how often all ranks together called what the scratch track does not allow, products first."""
    calls: Counter[str] = Counter()
    for report in reports:
        calls.update({name: count for name, count in report.items() if _is_barred(name)})
    order = list(_ADVICE)
    return {name: calls[name] for name in sorted(calls, key=lambda name: (order.index(classify(name)), name))}


def _is_barred(name: str) -> bool:
    return name not in _COUNTS and classify(name) is not Kind.ALLOWED


CHECK = LibraryCallCheck
