"""The outcome of one judgement. Every run produces these; metrics and viewers only read them."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from pkb.files import write_whole

SCHEMA = 1


class Verdict(StrEnum):
    CORRECT = "CORRECT"
    WRONG = "WRONG"
    """Values, shape, dtype, device, layout, aliasing or a changed input."""
    REJECTED = "REJECTED"
    """By the static screen."""
    BUILD_FAILED = "BUILD_FAILED"
    CRASH = "CRASH"
    HANG = "HANG"
    CHEAT = "CHEAT"
    ENVIRONMENT = "ENVIRONMENT"
    """Ours or the machine's fault; never counted against the candidate."""


class Pace(StrEnum):
    """How a correct candidate compares with the reference, at 95 %."""

    FASTER = "FASTER"
    TIE = "TIE"
    SLOWER = "SLOWER"
    UNTIMED = "UNTIMED"


@dataclass
class Record:
    """One candidate judged on one problem, with all that is needed to doubt it."""

    problem: str
    category: str
    candidate: dict[str, Any]
    """name, backend, sha256"""
    setup: dict[str, Any]
    """size, m, n, dtype, world, trials, calls, track, limits: the resolved settings"""
    verdict: Verdict
    reason: str
    """One sentence: what was seen and, unless CORRECT, what to do."""
    evidence: dict[str, Any] = field(default_factory=dict)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    """What the static screen found and let pass."""
    pace: Pace = Pace.UNTIMED
    timing: dict[str, Any] | None = None
    profile: dict[str, Any] | None = None
    """Where the time of a few calls went, when asked for; the trace lies beside the record."""
    environment: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of the judgement's own phases."""
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    schema: int = SCHEMA

    @property
    def correct(self) -> bool:
        return self.verdict is Verdict.CORRECT

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        fields = json.loads(text)
        return cls(**{**fields, "verdict": Verdict(fields["verdict"]), "pace": Pace(fields["pace"])})

    def write(self, path: Path) -> Path:
        """Whole or not at all, so that a reader never sees half a record."""
        return write_whole(path, self.to_json() + "\n")
