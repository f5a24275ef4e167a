"""Every order of the judge to a rank or to the nursery, and every answer: one dataclass each.

An order names the class of its answer. The judge parses an answer into that class, strictly, before anything else sees
it (`pkb.judge.worlds.gate`); a rank and the nursery look the order's handler up in a table. Every field of an answer
has a type of `pkb.protocol.bounds`, which says how long, how large or how deep it may be, or is made of such fields.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypeVar

from pkb.base.pytree import MOST_TENSORS, list_form_tensors
from pkb.base.schema import AtMost, SchemaError, dump, parse
from pkb.problems.size import Size
from pkb.protocol import bounds as b
from pkb.protocol.sums import Sums

KIND, ORDER_NUMBER = "kind", "order"
"""Names that a header has besides the fields of its message."""

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
    outliers: bool
    """Whether a few values of the inputs are large."""
    published: bool
    """Whether a model's inputs are drawn as its file says."""


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
class SentArguments:
    """The arguments of one call that the judge has drawn; the bytes of the tensors follow the order."""

    form: Any
    """The nesting of the arguments (`pkb.protocol.sent_inputs`)."""
    tensors: list[TensorSpec]


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

    type: b.Name
    shape: b.Shape
    dtype: b.DtypeName
    device: b.Name
    strides: b.Strides | None
    aliases: Annotated[list[b.Name], AtMost(256)]
    """Arguments whose memory it shares."""
    reuses: Annotated[list[b.Index], AtMost(1024)]
    """Earlier calls of the trial whose results it shares memory with."""

    def __post_init__(self) -> None:
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ValueError("a tensor has as many strides as sizes")

    @property
    def nbytes(self) -> int:
        return b.count_bytes(self.shape, b.DTYPES[self.dtype])


@dataclass(frozen=True)
class ResultReport:
    """What one call returned on one rank."""

    form: b.Form
    """The nesting of the result (`pkb.base.pytree`)."""
    leaves: Annotated[list[LeafReport], AtMost(MOST_TENSORS)]
    changed: Annotated[list[b.Name], AtMost(256)]
    """Arguments that the call changed without leave."""

    def __post_init__(self) -> None:
        if list_form_tensors(self.form) != [*range(len(self.leaves))]:
            raise ValueError("the form of a result names each of its tensors once, in order")


# Answers of a rank


@dataclass(frozen=True)
class Ready(Answer):
    """The first message of a rank, and of the nursery."""


@dataclass(frozen=True)
class ErrorReport(Answer):
    """An exception, in place of the answer."""

    type: b.Name
    message: b.Line
    traceback: b.Lines = field(default_factory=list)
    advice: b.Line | None = None
    errors: b.Lines = field(default_factory=list)
    """Of a compiler."""


@dataclass(frozen=True)
class HeldTensors(Answer):
    shapes: Annotated[dict[b.Name, b.Shape], AtMost(1 << 14)]
    """By name, of all that a model holds once it is built."""


@dataclass(frozen=True)
class CallResults(Answer):
    results: Annotated[list[ResultReport], AtMost(1024)]
    has_added: bool = False
    """Whether 16-bit floats of three ranks or more were added up, unless natively."""

    def __post_init__(self) -> None:
        if sum(leaf.nbytes for result in self.results for leaf in result.leaves) > b.MOST_BYTES:
            raise ValueError(f"the results have more than {b.MOST_BYTES} bytes")


@dataclass(frozen=True)
class OperationList(Answer):
    operations: Annotated[list[tuple[b.Index, b.Name]], AtMost(1 << 15)]
    """Number and name of operations that could be left out."""


@dataclass(frozen=True)
class ConductReport(Answer):
    reports: b.Facts
    """What each check of `pkb.checks` noticed, by the check's name."""


@dataclass(frozen=True)
class MemoryReport(Answer):
    argument_bytes: b.Count
    result_bytes: b.Count
    cache_bytes: b.Count
    """Of the device's last-level cache; 0 where it is not flushed."""
    free_bytes: b.Count


@dataclass(frozen=True)
class BlockTimes(Answer):
    ns: Annotated[list[b.Nanoseconds], AtMost(1 << 14)]
    """Nanoseconds of each call."""
    host_s: b.Seconds
    """Seconds that the host took to queue the block."""
    ahead: b.Calls
    """The number of first calls that were queued before the device began with them."""
    odd: b.Name | None = None
    """A returned object that is no plain tensor."""


@dataclass(frozen=True)
class DigestList(Answer):
    digests: Annotated[
        list[Annotated[list[Annotated[list[b.Word], AtMost(1024)]], AtMost(1024)]],
        AtMost(1024),
    ]
    """Of every result: by call, leaf and part."""


# Orders to a rank


@dataclass(frozen=True)
class LoadSolution(Order):
    """Load a candidate's file, or the problem's own solution, as it is or compiled by torch.compile."""

    problem: str
    candidate: str = ""
    compiled: str = ""
    extensions: ExtensionOrder | None = None
    scratch: bool = False
    """Whether the candidate is observed as closely as the track scratch needs; a reference, as if it were one."""


@dataclass(frozen=True)
class LoadMutant(Order):
    """Load one of the problem's own wrong variants, its solution with a fault planted in it, or a file's."""

    problem: str
    name: str
    integers: bool = False
    file: str = ""
    """A candidate's file to load in place of the problem's solution."""


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
    sent: list[SentArguments | None] = field(default_factory=list)
    """By call, arguments that replace what is drawn from the seeds; None, or an end of the list, replaces nothing."""
    pads: list[int] = field(default_factory=list)
    """Bytes to allocate before the inputs."""


@dataclass(frozen=True)
class RunCalls(Order):
    """Make the prepared calls, back to back, and hold their results."""

    answer = CallResults
    count: bool = False
    """Whether library calls are counted, operator by operator."""
    sums: Sums = Sums.NATIVE


@dataclass(frozen=True)
class SendTensors(Order):
    """Send the held tensors after the answer, or pieces of them, call by call."""

    pieces: list[list[list[tuple[int, int]] | None]]


@dataclass(frozen=True)
class HoldFirstResult(Order):
    """Hold what the very first call returned, as it is now."""


@dataclass(frozen=True)
class HoldTimedResult(Order):
    """Hold what one call of the last timed block, or of the last RunUntimed, returned."""

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
    """Time every prepared call once, and keep a copy of what each returned."""

    answer = BlockTimes
    spin_s: float
    flush: bool


@dataclass(frozen=True)
class RunUntimed(Order):
    """Draw inputs and make calls without a clock in the rank: the judge's own runs."""

    case: CaseOrder
    calls: list[CallOrder]
    spin_s: float
    sent: list[SentArguments | None] = field(default_factory=list)
    """As in DrawInputs."""


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
    refused: b.Line = ""
    """Why the sandbox could not be set up."""
    sandbox: b.Facts = field(default_factory=dict)
    """What is closed to the ranks."""


@dataclass(frozen=True)
class Spawn(Order):
    """Fork a world of ranks; the message carries each rank's channel and log as file descriptors."""

    answer = Spawned
    world: int
    size: int
    platform: str
    folder: str
    """The world's folder: the judge puts files there, and takes traces from it; ranks only read it."""
    work: str
    """Where ranks write: a folder in the world's folder."""
    shared: str
    """Where symmetric memory is made."""
    memory: int | None
    build_folder: str
    """Where a world of one builder compiles; empty for ranks."""
    for_candidate: bool
    sandbox: str
    exposed: list[str]
    """Paths that the ranks may write to besides their folders."""
    hidden: list[str] = field(default_factory=list)
    """Paths that the ranks must not see, even where they lie in a folder that is shown."""


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
    command_lines: Annotated[list[b.Name], AtMost(64)]


@dataclass(frozen=True)
class ListHelpers(Order):
    """List the processes that a world's ranks have started."""

    answer = ProcessList
    world: int


@dataclass(frozen=True)
class Usage(Answer):
    seconds: Annotated[dict[b.Index, tuple[b.Seconds, b.Seconds]], AtMost(1024)]
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

    world: b.Count
    rank: b.Index
    code: b.ExitCode
    """The exit code; negative for a signal."""
    overuse: b.Line = ""
    """The limit that its world exceeded, where this is why the rank was killed."""


ORDERS: dict[str, type[Order]] = {kind.__name__: kind for kind in Order.__subclasses__()}


def encode(message: Order | Answer, number: int | None = None) -> Header:
    """Return the header of a message. An order has a number, and its answer the same one."""
    numbered = {} if number is None else {ORDER_NUMBER: number}
    return {KIND: type(message).__name__, **numbered, **dump(message)}


def decode_order(header: Header) -> Order:
    """Return the order of a header, as ranks and the nursery receive it. Raises SchemaError."""
    kind = ORDERS.get(header.get(KIND, ""))
    if kind is None:
        raise SchemaError(f"unknown order {header.get(KIND)!r}")
    return parse(kind, list_fields(header))


def list_fields(header: Header) -> Header:
    """Return the fields of the message in a header."""
    return {name: value for name, value in header.items() if name not in (KIND, ORDER_NUMBER)}
