"""The outcome of one judgement. Every run writes records; metrics and viewers only read them."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from pkb.base.foreign_files import parse_json
from pkb.base.printable import clean_fields
from pkb.base.schema import AtMost, Between, Bound, Clean, PlainTree, SchemaError, dump, parse
from pkb.display import format_duration, format_speedup, write_facts
from pkb.screen import ScreenFinding
from pkb.settings import Limits, Tolerance, Track
from pkb.trial import Trial

SCHEMA = 3
"""The version of the record's form: counted up whenever a field changes its name, its place or its meaning."""
ORACLE = "oracle"
"""The rule of comparison without a tolerance: the candidate may err as much as the reference itself does."""
_OFTEN = 0.5

MOST_RANKS = 4096
"""The most ranks that a record may speak of."""
_MOST_US, _LEAST_US = 1e12, 1e-6
_MOST_TIMES = 4_000_000
"""The most raw times of one world."""


class _CallTimes(Bound):
    """Raw times: positive, as many ranks in every call, and at least one call in every block."""

    def settle(self, value: Any, place: str) -> Any:
        calls = [call for block in value for call in block]
        ranks = {len(call) for call in calls}
        if len(ranks) > 1 or 0 in ranks or not all(value):
            raise SchemaError(f"{place} has blocks without calls, or calls with different numbers of ranks")
        if sum(map(len, calls)) > _MOST_TIMES:
            raise SchemaError(f"{place} has more than {_MOST_TIMES} times")
        if calls and not _LEAST_US <= min(map(min, calls)) <= max(map(max, calls)) <= _MOST_US:
            raise SchemaError(f"{place} has times that are not between {_LEAST_US:g} and {_MOST_US:g} us")
        return value


class _Ordered(Bound):
    """Two ends of which the first is not above the second, and none below 0."""

    def settle(self, value: Any, place: str) -> Any:
        if not 0 <= value[0] <= value[1] <= _MOST_US:
            raise SchemaError(f"{place} is no interval of numbers that are at least 0")
        return value


class _Details(PlainTree):
    """Any JSON value, with NaN and infinities, which an output may hold."""

    def _check_number(self, value: Any, place: str) -> Any:
        return value if isinstance(value, float) else super()._check_number(value, place)


Count = Annotated[int, Between(0, 1 << 53)]
Figure = Annotated[float, Between(-1e15, 1e15)]
Microseconds = Annotated[float, Between(_LEAST_US, _MOST_US)]
Ratio = Annotated[float, Between(1e-9, 1e9)]
"""How many times one time is another: never 0 or below."""
RankNumber = Annotated[int, Between(0, MOST_RANKS - 1)]
Facts = Annotated[dict[str, Any], _Details(depth=12, items=100_000, length=4000)]
Spans = Annotated[list[list[list[float]]], _CallTimes()]
"""Microseconds by block, call and rank."""
Interval = Annotated[tuple[float, float], _Ordered()]
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

    def __post_init__(self) -> None:
        clean_fields(self)


@dataclass(frozen=True)
class SetupFacts:
    """How the problem was posed, with all defaults filled in."""

    dtype: str
    world: Annotated[int, Between(1, MOST_RANKS)]
    """The number of ranks."""
    trials: Count
    calls: Count
    """Back-to-back calls in one trial."""
    m: Count | None = None
    n: Count | None = None
    size: str | None = None
    """The name of a KernelBench task's size, which has it in place of `m` and `n`."""
    suite: str | None = None
    """Where the problem comes from: parallel, kernelbench, or the name of a folder."""
    inputs: str | None = None
    """For KernelBench's tasks and checkouts of ParallelKernelBench: sound or published."""
    state: str | None = None
    """For KernelBench's tasks: where the candidate's weights came from."""
    degenerate: str | None = None
    """Why the problem counts for nothing: its results are the same for all inputs."""
    compare: Tolerance | str = ORACLE
    limits: Limits = field(default_factory=Limits)
    track: Track = Track.ANY
    screened: bool = False
    """Whether the static screen has let the candidate pass."""

    def __post_init__(self) -> None:
        clean_fields(self)


@dataclass(frozen=True)
class Evidence:
    """What was seen when a candidate failed. Fields that say nothing about this failure are empty.

    Whatever is written here is printable: a candidate chooses many of these words. Only `log` has several lines.
    """

    check: str = ""
    """The check that failed."""
    rule: str = ""
    """The rule that the check applied: one of the screen's, or that of the comparison."""
    rank: RankNumber | None = None
    ranks: list[RankNumber] = field(default_factory=list)
    """All ranks that did not answer in time."""
    trial: Trial | None = None
    call: Count | None = None
    """The call's number in its trial."""
    output: Count | None = None
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
    details: Facts = field(default_factory=dict)
    """Facts that belong to one check only."""

    def __post_init__(self) -> None:
        clean_fields(self, texts=("log",))


@dataclass(frozen=True)
class SandboxFacts:
    """What was closed to the candidate, or limited, and by which means."""

    level: str = "untried"
    network: str | None = None
    """Closed by what, or open, which includes the loopback of the machine."""
    keyring: str | None = None
    """Whether keys of the kernel can be reached: closed by what, empty at the start, or open."""
    files: str | None = None
    """Whether files of others can be reached: closed by what, or open."""
    shared_memory: str | None = None
    """Whether the machine's shared memory can be reached: closed by what, or open."""
    memory: str | None = None
    """To what the memory of all processes together is limited, and by which means."""
    writing: str | None = None
    """To what the files that the candidate writes are limited, and by which means."""
    processes: str | None = None
    """Whether other processes can be reached: closed by what, visible, which is to be seen only, or open."""
    most_processes: Count | None = None
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
    cores: Count | None = None
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
    details: Facts = field(default_factory=dict)
    """What else the platform says about the machine."""

    def __post_init__(self) -> None:
        clean_fields(self)


@dataclass(frozen=True)
class KernelTime:
    """The calls of one kernel or operator in a profile, over all ranks."""

    name: str
    calls: Count
    us: Figure
    share: Figure
    """The share of all kernels' time."""

    def __post_init__(self) -> None:
        clean_fields(self)


@dataclass(frozen=True)
class ProfileSummary:
    """Where the time of a few calls went."""

    of: str
    """What was timed: device kernels, or operators on the CPU."""
    calls: Count
    events: Count
    top: list[KernelTime]
    """The kernels that took longest, over all ranks."""
    idle: dict[str, Figure]
    """By rank: the share of time in which no kernel ran."""
    notes: list[str]
    """What went wrong while profiling."""

    def __post_init__(self) -> None:
        clean_fields(self)


@dataclass(frozen=True)
class ControlTimes:
    """The reference in both worlds, before one of them got the candidate: how fast identical code is in either."""

    reference_us: Microseconds
    candidate_us: Microseconds
    ratio: Ratio
    interval: Interval
    blocks_us: Annotated[dict[str, Spans], AtMost(16)] = field(repr=False)


@dataclass(frozen=True)
class BaselineTimes:
    """A compiled reference: its time and the candidate's speed-up over it, or why there is no time."""

    failed: str = ""
    """Why it could not be timed."""
    us: Microseconds | None = None
    speedup: Ratio | None = None
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
    drift: Ratio | None = None
    """How much slower the eager reference was now than when the stored time was taken."""
    blocks_us: Spans = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        clean_fields(self, numbers=("blocks_us",))


@dataclass(frozen=True)
class Timing:
    """Microseconds are medians over blocks; a block's is the mean of its middle half of calls, which varies less than
    its median; a call takes as long as its slowest rank."""

    method: str
    rigor: str
    reference_us: Microseconds
    candidate_us: Microseconds
    speedup: Ratio
    interval: Interval
    """By bootstrap over pairs of blocks, and wider by the spread."""
    spread: Figure
    """The share by which identical code may differ between two processes, in calls of this length."""
    pace: Pace
    skew_us: dict[str, Figure]
    """By world: the median difference between the slowest and the fastest rank of a call."""
    queued: dict[str, Figure]
    """By world: the share of blocks in which every call was queued before the device began with it."""
    calls_per_block: Count
    warm_up_calls: dict[str, Count]
    cache: str
    roofline_us: Annotated[float, Between(0, _MOST_US)] | None
    """The speed of light of this problem on this hardware; None where the hardware's rates are unknown."""
    percent_of_roofline: dict[str, Annotated[float, Between(0, 1e15)]]
    control: ControlTimes | None
    """The speed-up is what the candidate's ratio is beyond the control's; None where no control was needed."""
    judge_clock_us: dict[str, Figure]
    """By the judge's own clock: what a call took, and how much of that was harness and noise."""
    checked_calls: Count
    """Timed calls whose outputs were compared, on every rank."""
    clocks: dict[str, Facts]
    """Frequencies, temperature and power, before and after."""
    baselines: Annotated[dict[str, BaselineTimes], AtMost(100)]
    blocks_us: Annotated[dict[str, Spans], AtMost(16)] = field(repr=False)
    """All raw times of reference and candidate."""

    def __post_init__(self) -> None:
        clean_fields(self, numbers=("blocks_us",))

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
    strided_outputs: list[Count] = field(default_factory=list)
    """Numbers of returned tensors that were not contiguous; the clock includes making them so, for both sides."""
    library_calls: dict[str, Count] = field(default_factory=dict)
    """Collectives and vendor products that the candidate's ranks called, as far as they were counted."""
    profile: ProfileSummary | None = None
    """Where the time of a few calls went, when asked for; the trace lies in the record's folder."""
    environment: Environment = field(default_factory=Environment)
    seconds: dict[str, Figure] = field(default_factory=dict)
    """Wall time of the judgement's own phases."""
    when: Annotated[str, Clean(40)] = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        clean_fields(self)

    @property
    def correct(self) -> bool:
        return self.verdict is Verdict.CORRECT

    def __repr__(self) -> str:
        return f"<Record {self.problem} {self.candidate.name}: {self._describe_outcome()}; {self.reason}>"

    def _repr_html_(self) -> str:
        evidence, setup, timing = self.evidence, self.setup, self.timing
        places = {name: getattr(evidence, name) for name in ("rank", "trial", "call", "output")}
        facts = {
            "why": self.reason,
            "speed-up": f"{self._format_speedup()} {self.pace}" if timing else "",
            "times": f"{format_duration(timing.candidate_us)}, reference {format_duration(timing.reference_us)}"
            if timing
            else "",
            "check": evidence.check,
            "place": ", ".join(f"{name} {value}" for name, value in places.items() if value is not None),
            "candidate": f"{self.candidate.name} ({self.candidate.backend})",
            "posed": f"{setup.world} ranks on {self.environment.platform}, {setup.dtype}, {self._describe_size()}",
            "warnings": "; ".join(finding.sentence for finding in self.warnings),
        }
        stacks = [f"rank {rank}: {line}" for rank, lines in evidence.stacks.items() for line in lines]
        texts = {
            "Where it was raised": "\n".join([*evidence.traceback, *filter(None, [evidence.message])]),
            "What the compiler printed": "\n".join(evidence.errors),
            "Where the ranks were": "\n".join(stacks),
            "What the rank printed": evidence.log,
        }
        return write_facts(self.problem, self.verdict, facts, texts)

    def _describe_outcome(self) -> str:
        return f"{self.verdict} {self.pace} {self._format_speedup()}" if self.timing else str(self.verdict)

    def _format_speedup(self) -> str:
        timing = self.timing
        return format_speedup(timing.speedup, *timing.interval, self.environment.comparable_times) if timing else ""

    def _describe_size(self) -> str:
        return f"size {self.setup.size}" if self.setup.size else f"M={self.setup.m}, N={self.setup.n}"

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
        return cls.from_fields(parse_json(text))

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
