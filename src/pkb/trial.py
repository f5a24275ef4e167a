"""What a trial is for: its kind, and its number among those of its kind."""

from dataclasses import dataclass
from enum import StrEnum


class TrialKind(StrEnum):
    CHECK = "check"
    """An ordinary trial, compared in full."""
    HIDDEN = "hidden"
    """A trial at a size that no prompt names, with inputs that the judge sends."""
    PROBE = "probe"
    """A trial with the same inputs in every call, except for one element of one rank."""
    TIMED = "timed"
    """A timed block: its seeds are never those of checked trials."""
    CONTROL = "control"
    """A timed block of the reference in ranks that a candidate will get: the candidate must not find its own inputs."""
    CLOCK = "clock"
    """Calls under the judge's own clock."""


@dataclass(frozen=True)
class Trial:
    kind: TrialKind
    index: int = 0

    def __str__(self) -> str:
        match self.kind:
            case TrialKind.CHECK:
                return f"trial {self.index}"
            case TrialKind.HIDDEN:
                return "the hidden trial"
            case TrialKind.PROBE:
                return "the probe"
            case TrialKind.TIMED | TrialKind.CONTROL:
                return f"timed block {self.index}"
            case TrialKind.CLOCK:
                return f"run {self.index} under the judge's clock"
