"""Every order of the judge to a rank or to the nursery, and every answer: one dataclass each.

An order names the class of its answer. The judge parses an answer into that class, strictly (`pkb.base.schema`), before
anything else sees it; a rank and the nursery look the order's handler up in a table.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from pkb.base.schema import SchemaError, dump, parse
from pkb.problems.size import Size

Header = dict[str, Any]
"""A message as it travels: the name of its class under `kind`, and its fields."""
Recipe = dict[str, Any]
"""How a model of KernelBench's is built; the problem writes and reads it."""


@dataclass(frozen=True)
class Answer:
    """The base of all answers; by itself, that the order was carried out."""


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True)
class Order:
    answer: ClassVar[type[Answer]] = Answer


# Parts of messages


@dataclass(frozen=True)
class CaseOrder:
    """Which case of the problem a rank poses itself."""

    size: Size
    dtype: str
    variant: int
    """Problems vary what they pose from trial to trial; what is timed is always variant 0."""
    whole: bool
    """Whether the inputs are small whole numbers, whose sums are exact."""
    published: bool
    """Whether a model's inputs are drawn as its file says."""
    on_host: bool
    """Whether the inputs are drawn on the host, since the judge sends their values."""


@dataclass(frozen=True)
class CallOrder:
    """How one call's inputs are drawn on one rank."""

    seed: int
    shared_seed: int
    """The same on all ranks."""
    delay: float = 0.0
    """Seconds by which this rank comes late to the call."""
    bump: tuple[float, float] | None = None
    """Where one element of the inputs is changed, as shares of tensors and elements."""


@dataclass(frozen=True)
class TensorSpec:
    shape: list[int]
    dtype: str


@dataclass(frozen=True)
class ExtensionOrder:
    """Where a candidate's compiled extensions are, and how others are compiled."""

    libraries: str
    build_folder: str
    backend: str
    architectures: str | None


@dataclass(frozen=True)
class LeafReport:
    """What a rank says about one tensor of a result, before its bytes are read."""

    type: str
    shape: list[int]
    dtype: str
    device: str
    strides: list[int] | None
    aliases: list[str]
    """Arguments whose memory it shares."""
    reuses: list[int]
    """Earlier calls of the trial whose results it shares memory with."""


@dataclass(frozen=True)
class ResultReport:
    """What one call returned on one rank."""

    form: Any
    """The nesting of the result (`pkb.base.pytree`)."""
    leaves: list[LeafReport]
    changed: list[str]
    """Arguments that the call changed without leave."""


# Answers of a rank


@dataclass(frozen=True)
class Ready(Answer):
    """The first message of a rank, and of the nursery."""


@dataclass(frozen=True)
class ErrorReport(Answer):
    """An exception, in place of the answer."""

    type: str
    message: str
    traceback: list[str] = field(default_factory=list)
    advice: str | None = None
    errors: list[str] = field(default_factory=list)
    """Of a compiler."""


@dataclass(frozen=True)
class HeldTensors(Answer):
    shapes: dict[str, list[int]]
    """By name, of all that a model holds once it is built."""


@dataclass(frozen=True)
class CallResults(Answer):
    results: list[ResultReport]


@dataclass(frozen=True)
class OperationList(Answer):
    operations: list[tuple[int, str]]
    """Number and name of operations that could be left out."""


@dataclass(frozen=True)
class ConductReport(Answer):
    reports: dict[str, Any]
    """What each check of `pkb.checks` noticed, by the check's name."""


@dataclass(frozen=True)
class MemoryReport(Answer):
    argument_bytes: int
    result_bytes: int
    cache_bytes: int
    """Of the device's last-level cache; 0 where it is not flushed."""
    free_bytes: int


@dataclass(frozen=True)
class BlockTimes(Answer):
    ns: list[float]
    """Nanoseconds of each call."""
    host_s: float
    """Seconds that the host took to queue the block."""
    queued: bool
    """Whether every call was queued before the device began with it."""
    kept: list[int]
    """Calls whose outputs the rank still has."""
    odd: str | None = None
    """A returned object that is no plain tensor."""


@dataclass(frozen=True)
class DigestList(Answer):
    digests: list[list[list[int]]]
    """Of every result: by call, leaf and part."""


# Orders to a rank


@dataclass(frozen=True)
class LoadSolution(Order):
    """Load a candidate's file, or the problem's own solution, as it is or compiled by torch.compile."""

    problem: str
    candidate: str = ""
    compiled: str = ""
    extensions: ExtensionOrder | None = None


@dataclass(frozen=True)
class LoadMutant(Order):
    """Load one of the problem's own wrong variants, or its solution with a fault planted in it."""

    problem: str
    name: str
    integers: bool = False


@dataclass(frozen=True)
class BuildModel(Order):
    """Build the loaded model once, to see what it holds."""

    answer = HeldTensors
    case: CaseOrder
    recipe: Recipe


@dataclass(frozen=True)
class DrawInputs(Order):
    """Build the solution, where a recipe says how, and draw the inputs of the next calls."""

    case: CaseOrder
    calls: list[CallOrder]
    oracle: bool = False
    recipe: Recipe | None = None
    reuse_memory: bool = False
    """Whether inputs are put into the memory of the last trial's: an address must tell nothing."""
    sent: list[list[TensorSpec]] | None = None
    """By call, tensors that follow this message and replace what is drawn."""
    pads: list[int] = field(default_factory=list)
    """Bytes to allocate before the inputs."""


@dataclass(frozen=True)
class RunCalls(Order):
    """Make the prepared calls, back to back, and hold their results."""

    answer = CallResults
    count: bool = False
    """Whether library calls are counted, operator by operator."""


@dataclass(frozen=True)
class SendTensors(Order):
    """Send the held tensors after the answer, or pieces of them, call by call."""

    pieces: list[list[list[tuple[int, int]] | None]]


@dataclass(frozen=True)
class HoldFirstResult(Order):
    """Hold what the very first call returned, as it is now."""


@dataclass(frozen=True)
class HoldTimedResult(Order):
    """Hold what one call of the last timed block returned."""

    answer = CallResults
    call: int


@dataclass(frozen=True)
class ListOperations(Order):
    """List the operations of the first prepared call that could be left out."""

    answer = OperationList


@dataclass(frozen=True)
class ReportConduct(Order):
    """Report what there was to notice since the candidate was loaded."""

    answer = ConductReport


@dataclass(frozen=True)
class ReleaseMemory(Order):
    """Release the memory of calls and results, and stop what compiled for them."""


@dataclass(frozen=True)
class MeasureMemory(Order):
    """Measure the prepared calls, the last output, and the memory that the device has left."""

    answer = MemoryReport


@dataclass(frozen=True)
class WarmUp(Order):
    """Make `count` calls, for compilers, caches and clocks to settle."""

    count: int


@dataclass(frozen=True)
class TimeBlock(Order):
    """Time every prepared call once."""

    answer = BlockTimes
    spin_s: float
    flush: bool
    keep_from: int
    """The first call whose output is kept, where not all fit."""


@dataclass(frozen=True)
class RunUntimed(Order):
    """Draw inputs and make calls without a clock in the rank: the judge's own runs."""

    case: CaseOrder
    calls: list[CallOrder]
    spin_s: float


@dataclass(frozen=True)
class DigestResults(Order):
    """Digest all results of the last RunUntimed under a key."""

    answer = DigestList
    key: int


@dataclass(frozen=True)
class RunProfiler(Order):
    """Make the prepared calls under a profiler, which leaves its trace in the rank's folder."""

    tool: str


@dataclass(frozen=True)
class BuildExtensions(Order):
    """Compile a candidate's extensions, in a process without peers and GPU."""

    candidate: str
    extensions: ExtensionOrder


@dataclass(frozen=True)
class Leave(Order):
    """End this rank."""


# Between judge and nursery


@dataclass(frozen=True)
class NurserySettings(Order):
    """The first message to the nursery."""

    answer = Ready
    environment: dict[str, str]
    folders: list[str]
    """Folders to remove at the end."""
    service: list[str]
    """The command of a service that ranks need, such as MPS; empty for none."""
    execute: bool
    """Whether a rank starts as a program of its own, with imports of its own, as profilers want it."""
    preloaded: list[str]
    preloaded_for_candidates: list[str]


@dataclass(frozen=True)
class Spawned(Answer):
    refused: str = ""
    """Why the sandbox could not be set up."""
    sandbox: dict[str, Any] = field(default_factory=dict)
    """What is closed to the ranks."""


@dataclass(frozen=True)
class Spawn(Order):
    """Fork a world of ranks; the message carries each rank's channel and log as file descriptors."""

    answer = Spawned
    world: int
    size: int
    platform: str
    folder: str
    shared: str
    memory: int | None
    builds: bool
    for_candidate: bool
    sandbox: str
    exposed: list[str]
    """Paths that the ranks may write to besides their folders."""


@dataclass(frozen=True)
class SignalRanks(Order):
    world: int
    number: int


@dataclass(frozen=True)
class PinRanks(Order):
    """Pin rank r of every world to the same core, or unpin the ranks."""

    world: int
    pinned: bool
    first: int
    """Selects the first core, so that several judges on one machine use different cores."""


@dataclass(frozen=True)
class ProcessList(Answer):
    command_lines: list[str]


@dataclass(frozen=True)
class ListHelpers(Order):
    """List the processes that a world's ranks have started."""

    answer = ProcessList
    world: int


@dataclass(frozen=True)
class Usage(Answer):
    seconds: dict[int, tuple[float, float]]
    """By rank: processor seconds used, and seconds spent waiting for a core."""


@dataclass(frozen=True)
class MeasureUsage(Order):
    answer = Usage
    world: int


@dataclass(frozen=True)
class Preload(Order):
    """Import modules that the next ranks will need."""

    modules: list[str]


@dataclass(frozen=True)
class EndWorld(Order):
    """End a world; the answer lists the processes that it had left behind."""

    answer = ProcessList
    world: int
    kill: bool
    trusted: bool
    """Whether daemonised processes are another world's: only one world at a time is untrusted."""


@dataclass(frozen=True)
class RankExited(Answer):
    """A report without an order: a rank has ended."""

    world: int
    rank: int
    code: int
    """The exit code; negative for a signal."""


ORDERS: dict[str, type[Order]] = {kind.__name__: kind for kind in Order.__subclasses__()}


def encode(message: Order | Answer) -> Header:
    return {"kind": type(message).__name__, **dump(message)}


def decode_order(header: Header) -> Order:
    """Return the order of a header, as ranks and the nursery receive it. Raises SchemaError."""
    kind = ORDERS.get(header.get("kind", ""))
    if kind is None:
        raise SchemaError(f"unknown order {header.get('kind')!r}")
    return parse(kind, _fields(header))


def decode_answer(kind: type[A], header: Header) -> A:
    """Return an answer of this class. Raises SchemaError for anything else."""
    if header.get("kind") != kind.__name__:
        raise SchemaError(f"an answer of kind {header.get('kind')!r}")
    return parse(kind, _fields(header))


def is_kind(kind: type[Answer], header: Header) -> bool:
    return header.get("kind") == kind.__name__


def _fields(header: Header) -> Header:
    return {name: value for name, value in header.items() if name not in ("kind", "order")}
