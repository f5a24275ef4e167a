"""A candidate must leave its signal pads as it found them, unless they count epochs."""

from collections.abc import Sequence
from dataclasses import dataclass

from pkb.checks import Breach, Check
from pkb.settings import Track


@dataclass(frozen=True)
class SignalReport:
    raised: int
    """Words that are not zero."""
    epochs: bool
    """Whether the candidate declares that its signals count up."""


class SignalPadCheck(Check):
    name = "signal-pads"
    report_type = SignalReport

    def report(self) -> SignalReport:
        epochs = getattr(self.observer.entry_module, "SIGNALS", "") == "epochs"
        return SignalReport(self.observer.count_raised_signals(), epochs)

    @staticmethod
    def conclude(reports: Sequence[SignalReport], track: Track) -> Breach | None:
        for rank, report in enumerate(reports):
            if report.raised and not report.epochs:
                reason = (
                    f"rank {rank} left {report.raised} words of its signal pads raised; take each down that you raise, "
                    'or say SIGNALS = "epochs" in the file if they count'
                )
                return Breach("WRONG", reason, rank)
        return None


CHECK = SignalPadCheck
