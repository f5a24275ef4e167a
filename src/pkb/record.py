"""The outcome of one judgement. Every run produces these; metrics and viewers only read them."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

SCHEMA = 2
"""2 has the raw times of every rank in `timing.blocks_us`; 1 had those of the slowest in two lists."""


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
    library_calls: dict[str, int] = field(default_factory=dict)
    """Collectives and vendor products that the candidate's ranks called, as far as they were counted."""
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
        """Also of an older schema. Raises ValueError when it is not a record."""
        return cls.from_fields(json.loads(text))

    @classmethod
    def from_fields(cls, fields: Any) -> "Record":
        try:
            known = upgraded(fields)
            return cls(**{**known, "verdict": Verdict(known["verdict"]), "pace": Pace(known["pace"])})
        except KeyError as error:
            raise ValueError(f"not a record: it has no {error}") from error
        except TypeError as error:
            # An unknown or a missing field, in the words of the class.
            raise ValueError(f"not a record: {error}") from error


_UNKNOWN_THEN: dict[str, Any] = {
    "rigor": "",
    "skew_us": {},
    "queued": {},
    "calls_per_block": 5,
    "warm_up_calls": {},
    "cache": "not looked after",
    "roofline_us": None,
    "percent_of_roofline": {},
    "spread": 0.0,
    "control": {},
    "outside_us": {},
    "checked_calls": 0,
    "clocks": {},
    "baselines": {},
}


def upgraded(fields: Any) -> dict[str, Any]:
    """A record's fields as this schema has them. Raises ValueError for what is none, or newer than this pkb."""
    if not isinstance(fields, dict):
        raise ValueError("not a record: not an object")
    for name in ("candidate", "setup", "evidence", "environment"):
        if not isinstance(fields.get(name), dict):
            raise ValueError(f"not a record: its {name!r} is no object")
    schema = fields.get("schema", 1)
    if schema > SCHEMA:
        raise ValueError(f"its schema is {schema} and this pkb knows {SCHEMA} at most; update pkb")
    timing = fields.get("timing")
    if not isinstance(timing, dict | None):
        raise ValueError("not a record: its 'timing' is no object")
    if timing and "reference_blocks_us" in timing:
        timing = _UNKNOWN_THEN | timing
        blocks = {side: timing.pop(f"{side}_blocks_us") for side in ("reference", "candidate")}
        timing["blocks_us"] = {side: [[[us] for us in block] for block in spans] for side, spans in blocks.items()}
    return {**fields, "timing": timing, "schema": SCHEMA}
