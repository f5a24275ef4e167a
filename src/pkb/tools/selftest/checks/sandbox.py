"""What a candidate can reach: the level of the sandbox, what its facts say, and a candidate that tries."""

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pkb.candidate import Candidate
from pkb.judge.worlds.sandboxed import is_place_closed
from pkb.record import Record, SandboxFacts
from pkb.settings import JudgementSettings
from pkb.tools.diagnosis import diagnose_sandbox
from pkb.tools.selftest.bench import Bench, describe_judgement
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_PROBE = """
import os
import socket

import torch.distributed as dist


def reaches_network():
    socket.create_connection(("127.0.0.1", {port}), timeout=2).close()
    return True


def reaches_files():
    return open({file!r}, "rb").read() == {content!r}


def reaches_shared_memory():
    return open({shared!r}, "rb").read() == {content!r}


def reaches_processes():
    if open("/proc/{pid}/cmdline", "rb").read() != {command!r}:
        return False
    os.kill({pid}, 0)
    return True


def try_to(reach):
    try:
        return reach()
    except OSError:
        return False


def solution(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    tries = (reaches_network, reaches_files, reaches_shared_memory, reaches_processes)
    found = [reach.__name__.removeprefix("reaches_") for reach in tries if try_to(reach)]
    if found:
        raise RuntimeError("{mark}" + " ".join(found))
    return total
"""
_MARK = "reached: "
_SHARED_MEMORY = "/dev/shm"


class _Sandbox(SelftestCheck):
    name = "sandbox"
    shows = "Candidates are confined: network, files, shared memory and processes of others are out of their reach."
    advice = "see `pkb doctor` for how to get a stronger sandbox; `--sandbox require` refuses to judge without one"

    def plan(self, bench: Bench) -> Sequence[Step]:
        return [Step("a candidate that tries", _try_to_reach, Round.FIRST), Step("level", _look_at_facts, Round.LAST)]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        return "; ".join(step.text for step in reversed(done))


@dataclass(frozen=True)
class _Baits:
    """What the probe looks for: each is there, and outside of the sandbox."""

    port: int
    file: str
    shared: str
    content: bytes
    pid: int
    command: bytes

    def make_candidate(self) -> Candidate:
        return Candidate.of(_PROBE.format(**asdict(self), mark=_MARK).encode(), "probe", "torch")


@contextlib.contextmanager
def _lay_baits() -> Iterator[_Baits]:
    """Listen on a port, and write a file into the temporary folder and into shared memory."""
    content = os.urandom(16)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        file = stack.enter_context(_write_bait(None, content))
        shared = stack.enter_context(_write_bait(_SHARED_MEMORY if os.path.isdir(_SHARED_MEMORY) else None, content))
        yield _Baits(port, file, shared, content, os.getpid(), _read_command())


@contextlib.contextmanager
def _write_bait(folder: str | None, content: bytes) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(prefix="pkb-selftest-", dir=folder) as file:
        file.write(content)
        file.flush()
        yield file.name


def _read_command() -> bytes:
    try:
        return Path("/proc/self/cmdline").read_bytes()
    except OSError:
        return b"\0"


def _try_to_reach(bench: Bench) -> StepResult:
    with _lay_baits() as baits:
        record = bench.judge_candidate(
            bench.pose("1_allreduce"), baits.make_candidate(), JudgementSettings(screen=False)
        )
    return weigh_try(record, bench.sandbox)


def weigh_try(record: Record, sandbox: SandboxFacts) -> StepResult:
    """Compare what the probe reached with what the sandbox is said to close."""
    reached = _find_reached(record)
    facts = describe_judgement(record) | {"reached": reached}
    if not record.correct and not reached:
        return StepResult(Status.FAILED, f"{record.verdict}: {record.reason}", facts)
    if broken := [place for place in reached if is_place_closed(sandbox, place)]:
        return StepResult(Status.FAILED, f"reached what is said to be closed: {', '.join(broken)}", facts)
    if reached:
        return StepResult(Status.WARNING, f"reached what is open: {', '.join(reached)}", facts)
    return StepResult(Status.OK, "a candidate that tried reached nothing", facts)


def _find_reached(record: Record) -> list[str]:
    _, mark, places = record.evidence.message.partition(_MARK)
    return places.split() if mark else []


def _look_at_facts(bench: Bench) -> StepResult:
    facts = bench.sandbox
    if facts == SandboxFacts():
        return StepResult(Status.NOT_RUN, "no candidate was run")
    level, *places = diagnose_sandbox(facts)
    held = [one.what.partition(", ")[2] for one in places if one.ok]
    text = f"{level.detail if level.ok else facts.level} confines {', '.join(held) or 'nothing'}"
    return StepResult(Status.OK if level.ok else Status.WARNING, text, asdict(facts))


SANDBOX = _Sandbox()
