"""The outcome of one judgement. Every run writes records; metrics and viewers only read them."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pkb.base.schema import SchemaError, dump, parse
from pkb.screen import ScreenFinding
from pkb.settings import Limits, Tolerance, Track
from pkb.trial import Trial

SCHEMA = 3
"""The version of the record's form: counted up whenever a field changes its name, its place or its meaning."""
ORACLE = "oracle"
"""The rule of comparison without a tolerance: the candidate may err as much as the reference itself does."""
_OFTEN = 0.5

Spans = list[list[list[float]]]
"""Microseconds by block, call and rank."""
Interval = tuple[float, float]
"""The low and the high end of a 95 % interval."""


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
    """The judge's or the machine's fault; never counted against the candidate."""


class Pace(StrEnum):
    """How a correct candidate compares with the reference, at 95 %."""

    FASTER = "FASTER"
    TIE = "TIE"
    SLOWER = "SLOWER"
    UNTIMED = "UNTIMED"


@dataclass(frozen=True)
class CandidateFacts:
    """Which candidate was judged."""

    name: str
    backend: str
    sha256: str
    """The hash of the candidate's source."""


@dataclass(frozen=True)
class SetupFacts:
    """How the problem was posed, with all defaults filled in."""

    dtype: str
    world: int
    """The number of ranks."""
    trials: int
    calls: int
    """Back-to-back calls in one trial."""
    m: int | None = None
    n: int | None = None
    size: str | None = None
    """The name of a KernelBench task's size, which has it in place of `m` and `n`."""
    inputs: str | None = None
    """For KernelBench's tasks: sound or published."""
    state: str | None = None
    """For KernelBench's tasks: where the candidate's weights came from."""
    degenerate: str | None = None
    """Why the problem counts for nothing: its results are the same for all inputs."""
    compare: Tolerance | str = ORACLE
    limits: Limits = field(default_factory=Limits)
    track: Track = Track.ANY
    screened: bool = False
    """Whether the static screen has let the candidate pass."""


@dataclass(frozen=True)
class Evidence:
    """What was seen when a candidate failed. Fields that say nothing about this failure are empty."""

    check: str = ""
    """The check that failed."""
    rule: str = ""
    """The rule that the check applied: one of the screen's, or that of the comparison."""
    rank: int | None = None
    ranks: list[int] = field(default_factory=list)
    """All ranks that did not answer in time."""
    trial: Trial | None = None
    call: int | None = None
    """The call's number in its trial."""
    output: int | None = None
    """The number of the returned tensor."""
    phase: str = ""
    """What the ranks were asked to do."""
    type: str = ""
    """The name of the exception's type."""
    message: str = ""
    """The exception's message."""
    traceback: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """What the compiler printed, error by error."""
    stacks: dict[str, list[str]] = field(default_factory=dict)
    """By rank: where each rank was that did not answer in time."""
    log: str = ""
    """The end of what the rank printed."""
    findings: list[ScreenFinding] = field(default_factory=list)
    """All findings of the static screen."""
    details: dict[str, Any] = field(default_factory=dict)
    """Facts that belong to one check only."""


@dataclass(frozen=True)
class SandboxFacts:
    """What was closed to the candidate."""

    level: str = "untried"
    network: str | None = None
    files: str | None = None
    shared_memory: str | None = None
    processes: str | None = None
    """Whether other processes can be reached: closed, visible, which is to be seen only, or open."""
    most_processes: int | None = None
    """The most processes and threads that the candidate may have; None where the machine cannot limit them."""
    refused: dict[str, str] = field(default_factory=dict)
    """By stronger level: why the machine refused it."""


@dataclass(frozen=True)
class Environment:
    """The machine, and the software that was installed on it."""

    platform: str = ""
    comparable_times: bool = False
    """Whether times of different judgements on this platform may be compared, and enter leaderboards."""
    cpu: str | None = None
    cores: int | None = None
    gpus: list[str] | None = None
    """The names of all GPUs; None on platforms without them."""
    driver: str | None = None
    cuda: str | None = None
    pkb: str = ""
    python: str = ""
    system: str = ""
    torch: str | None = None
    triton: str | None = None
    numpy: str | None = None
    sandbox: SandboxFacts = field(default_factory=SandboxFacts)
    details: dict[str, Any] = field(default_factory=dict)
    """What else the platform says about the machine."""


@dataclass(frozen=True)
class KernelTime:
    """The calls of one kernel or operator in a profile, over all ranks."""

    name: str
    calls: int
    us: float
    share: float
    """The share of all kernels' time."""


@dataclass(frozen=True)
class ProfileSummary:
    """Where the time of a few calls went."""

    of: str
    """What was timed: device kernels, or operators on the CPU."""
    calls: int
    events: int
    top: list[KernelTime]
    """The kernels that took longest, over all ranks."""
    idle: dict[str, float]
    """By rank: the share of time in which no kernel ran."""
    notes: list[str]
    """What went wrong while profiling."""


@dataclass(frozen=True)
class ControlTimes:
    """The reference in both worlds, before one of them got the candidate: how fast identical code is in either."""

    reference_us: float
    candidate_us: float
    ratio: float
    interval: Interval
    blocks_us: dict[str, Spans] = field(repr=False)


@dataclass(frozen=True)
class BaselineTimes:
    """A compiled reference: its time and the candidate's speed-up over it, or why there is no time."""

    failed: str = ""
    """Why it could not be timed."""
    us: float | None = None
    speedup: float | None = None
    interval: Interval | None = None
    pace: Pace | None = None
    paired: bool | None = None
    """Whether its blocks took turns with the candidate's."""
    stored: bool = False
    """Whether it was timed before, by `pkb baseline`."""
    when: str = ""
    """When the stored time was taken."""
    fingerprint: str = ""
    """The machine on which the stored time was taken."""
    drift: float | None = None
    """How much slower the eager reference was now than when the stored time was taken."""
    blocks_us: Spans = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class Timing:
    """Microseconds are medians over blocks; a block's is the mean of its middle half of calls, which varies less than
    its median; a call takes as long as its slowest rank."""

    method: str
    rigor: str
    reference_us: float
    candidate_us: float
    speedup: float
    interval: Interval
    """By bootstrap over pairs of blocks, and wider by the spread."""
    spread: float
    """The share by which identical code may differ between two processes, in calls of this length."""
    pace: Pace
    skew_us: dict[str, float]
    """By world: the median difference between the slowest and the fastest rank of a call."""
    queued: dict[str, float]
    """By world: the share of blocks in which every call was queued before the device began with it."""
    calls_per_block: int
    warm_up_calls: dict[str, int]
    cache: str
    roofline_us: float | None
    """The speed of light of this problem on this hardware; None where the hardware's rates are unknown."""
    percent_of_roofline: dict[str, float]
    control: ControlTimes | None
    """The speed-up is what the candidate's ratio is beyond the control's; None where no control was needed."""
    judge_clock_us: dict[str, float]
    """By the judge's own clock: what a call took, and how much of that was harness and noise."""
    checked_calls: int
    """Timed calls whose outputs were compared, on every rank."""
    clocks: dict[str, dict[str, Any]]
    """Frequencies, temperature and power, before and after."""
    baselines: dict[str, BaselineTimes]
    blocks_us: dict[str, Spans] = field(repr=False)
    """All raw times of reference and candidate."""

    @property
    def waits(self) -> bool:
        """Whether the host was seldom ahead of the device, in either world."""
        return min(self.queued.values()) < _OFTEN


@dataclass(frozen=True)
class Record:
    """One candidate judged on one problem, with all that is needed to doubt it."""

    problem: str
    category: str
    candidate: CandidateFacts
    setup: SetupFacts
    verdict: Verdict
    reason: str
    """One sentence: what was seen and, unless CORRECT, what to do."""
    evidence: Evidence = field(default_factory=Evidence)
    warnings: list[ScreenFinding] = field(default_factory=list)
    """What the static screen found and let pass."""
    pace: Pace = Pace.UNTIMED
    timing: Timing | None = None
    library_calls: dict[str, int] = field(default_factory=dict)
    """Collectives and vendor products that the candidate's ranks called, as far as they were counted."""
    profile: ProfileSummary | None = None
    """Where the time of a few calls went, when asked for; the trace lies in the record's folder."""
    environment: Environment = field(default_factory=Environment)
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of the judgement's own phases."""
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    schema: int = SCHEMA

    @property
    def correct(self) -> bool:
        return self.verdict is Verdict.CORRECT

    def to_json(self, indent: int | None = 1) -> str:
        return json.dumps(self.to_fields(), indent=indent)

    def to_fields(self) -> dict[str, Any]:
        """Return the record as JSON values, without the fields of its parts that are empty."""
        fields = dump(self)
        for part in ("setup", "evidence", "environment"):
            fields[part] = _drop_empty(fields[part])
        fields["environment"]["sandbox"] = _drop_empty(fields["environment"]["sandbox"])
        if self.timing:
            baselines = fields["timing"]["baselines"]
            fields["timing"]["baselines"] = {name: _drop_empty(one) for name, one in baselines.items()}
        return fields

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Raises ValueError when the text is not a record of this schema."""
        return cls.from_fields(json.loads(text))

    @classmethod
    def from_fields(cls, fields: Any) -> "Record":
        """Raises ValueError when the fields are not those of a record of this schema."""
        check_schema(fields)
        try:
            return parse(cls, fields)
        except SchemaError as error:
            raise ValueError(f"not a record: {error}") from error


def check_schema(fields: Any) -> None:
    """Raise ValueError unless the fields claim to be a record of this schema, and have its parts."""
    if not isinstance(fields, dict):
        raise ValueError("not a record: not an object")
    schema = fields.get("schema")
    if not isinstance(schema, int):
        raise ValueError("not a record: it has no 'schema'")
    if schema != SCHEMA:
        advice = "update pkb" if schema > SCHEMA else "judge the candidate again"
        raise ValueError(f"its schema is {schema} and this pkb reads {SCHEMA}; {advice}")
    for part in ("candidate", "setup", "evidence", "environment"):
        if not isinstance(fields.get(part), dict):
            raise ValueError(f"not a record: its {part!r} is no object")
    if not isinstance(fields.get("timing"), dict | None):
        raise ValueError("not a record: its 'timing' is no object")


def _drop_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}
