"""Verdict, sentence and evidence for ranks that do not answer as they should.

`blame` is the verdict when nothing more is known: CRASH for candidates, ENVIRONMENT for references.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pkb.base.exception_names import KNOWN_NAMES
from pkb.failure import Failure
from pkb.protocol.candidate_file import CANDIDATE_FILE
from pkb.protocol.messages import ErrorReport
from pkb.record import Verdict

_OWN_FRAME = re.compile(rf"{re.escape(CANDIDATE_FILE)}:(\d{{1,7}}) in ")
_ADVICE: dict[int, str] = {
    signal.SIGSEGV: "it used memory that is not its own: check masks, offsets and pointers",
    signal.SIGBUS: "it used memory that is not there: check masks and pointers, or its shared memory is full",
    signal.SIGFPE: "it may have divided a whole number by zero",
}
"""What a candidate's author should look for after a signal."""


def describe_error(blame: Verdict, rank: int, phase: str, error: ErrorReport) -> Failure:
    """Return the failure of a rank that reported an exception; a type that no library has is named in the message."""
    if error.type not in KNOWN_NAMES:
        error = replace(error, type="Exception", message=f"{error.type}: {error.message}")
    facts: dict[str, Any] = {name: value for name, value in vars(error).items() if value or name in ("type", "message")}
    place = find_place(error.traceback)
    if error.type == "BuildError":
        compiled = f"compiled by {place}; " if place else ""
        reason = f"{error.message}; {compiled}all errors are in the evidence"
        return Failure(Verdict.BUILD_FAILED, reason, rank=rank, phase=phase, **facts)
    verdict = Verdict.BUILD_FAILED if phase == "load" and blame is Verdict.CRASH else blame
    advice = f"; {error.advice}" if error.advice else ""
    where = f" at {place}" if place else ""
    reason = f"rank {rank} raised {error.type} in {phase}{where}: {error.message}{advice}"
    return Failure(verdict, reason, rank=rank, phase=phase, **facts)


def find_place(frames: Sequence[str]) -> str:
    """Return in words the innermost line of the candidate among frames that a rank has sent; empty without one.

    Only the digits of the line's number are taken from the rank's words.
    """
    found = [match[1] for frame in frames if (match := _OWN_FRAME.match(frame))]
    return f"line {found[-1]} of {CANDIDATE_FILE}" if found else ""


def describe_exit(
    blame: Verdict, rank: int, phase: str, code: int | None, log: str, stack: Sequence[str] = ()
) -> Failure:
    """Return the failure of a rank that ended before it had answered; `stack` is where a signal hit it."""
    where = f" at {stack[0]}" if stack else ""
    advice = [_ADVICE[-code]] if code is not None and -code in _ADVICE else []
    advice += ["the end of its log is in the evidence"] if log.strip() else []
    return Failure(
        blame,
        "; ".join([f"rank {rank} {_describe_code(code)} in {phase}{where} before it had answered", *advice]),
        rank=rank,
        phase=phase,
        exit_code=code,
        log=log,
        stacks={str(rank): [*stack]} if stack else {},
    )


def _describe_code(code: int | None) -> str:
    if code is None:
        return "closed its channel"
    if code < 0:
        named = -code in {*signal.Signals}
        return f"was killed by {signal.Signals(-code).name if named else f'signal {-code}'}"
    return f"exited with code {code}"


def describe_hang(blame: Verdict, phase: str, seconds: float, stacks: Mapping[int, Sequence[str]]) -> Failure:
    """Return the failure of ranks that did not answer in time; `stacks` are theirs."""
    ranks = ", ".join(map(str, stacks))
    where = next((f"; rank {rank} was at {stack[0]}" for rank, stack in stacks.items() if stack), "")
    return Failure(
        Verdict.HANG if blame is Verdict.CRASH else blame,
        f"rank {ranks} did not finish {phase} within {seconds:g} s{where}; "
        "look for a signal that is never sent or a wait for the wrong value, or raise --timeout",
        ranks=[*stacks],
        phase=phase,
        seconds=seconds,
        stacks={str(rank): stack for rank, stack in stacks.items()},
    )


def describe_overuse(blame: Verdict, phase: str, overuse: str) -> Failure:
    """Return the failure of a world that was killed because it exceeded a limit."""
    reason = f"the ranks' processes {overuse}, and were ended in {phase}; use less, or choose a smaller --size"
    return Failure(blame, reason, phase=phase, check="quota")


def describe_overrun(blame: Verdict, phase: str, seconds: float) -> Failure:
    """Return the failure of ranks that were in time again and again, and took too long in all."""
    return Failure(
        Verdict.HANG if blame is Verdict.CRASH else blame,
        f"its ranks have taken more than {seconds:g} s in all before {phase}; make calls shorter, choose a smaller "
        "--size, or raise --timeout",
        phase=phase,
        check="total-time",
        seconds=seconds,
    )


def describe_flood(blame: Verdict, rank: int, limit_mib: int, log: str) -> Failure:
    """Return the failure of a rank that printed too much."""
    return Failure(
        blame,
        f"rank {rank} printed more than {limit_mib} MiB and was ended; remove the printing from the hot path",
        rank=rank,
        check="log-limit",
        log=log,
    )


def describe_garbled_answer(blame: Verdict, rank: int, phase: str, cause: object = "") -> Failure:
    """Return the failure of a rank whose answer is not of the agreed form; `cause` says in what way."""
    return Failure(
        blame,
        f"rank {rank} broke the judge's protocol ({phase}); a candidate must leave file descriptors alone that it "
        "did not open",
        rank=rank,
        phase=phase,
        check="protocol",
        cause=str(cause),
    )
