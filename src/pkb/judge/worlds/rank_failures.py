"""Verdict, sentence and evidence for ranks that do not answer as they should.

`blame` is the verdict when nothing more is known: CRASH for candidates, ENVIRONMENT for references.
"""

import signal
from collections.abc import Mapping, Sequence
from typing import Any

from pkb.failure import Failure
from pkb.protocol.messages import ErrorReport
from pkb.record import Verdict

_MOST_LINES, _MOST_TEXT = 40, 4000


def describe_error(blame: Verdict, rank: int, phase: str, error: ErrorReport) -> Failure:
    """Return the failure of a rank that reported an exception."""
    facts: dict[str, Any] = {name: value for name, value in vars(error).items() if value or name in ("type", "message")}
    if error.type == "BuildError":
        reason = f"{error.message}; all errors are in the evidence"
        return Failure(Verdict.BUILD_FAILED, reason, rank=rank, phase=phase, **facts)
    verdict = Verdict.BUILD_FAILED if phase == "load" and blame is Verdict.CRASH else blame
    advice = f"; {error.advice}" if error.advice else ""
    reason = f"rank {rank} raised {error.type} in {phase}: {error.message}{advice}"
    return Failure(verdict, reason, rank=rank, phase=phase, **facts)


def describe_exit(blame: Verdict, rank: int, phase: str, code: int | None, log: str) -> Failure:
    """Return the failure of a rank that ended before it had answered."""
    return Failure(
        blame,
        f"rank {rank} {_describe_code(code)} in {phase} before it had answered; the end of its log is in the evidence",
        rank=rank,
        phase=phase,
        exit_code=code,
        log=log,
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


def describe_flood(blame: Verdict, rank: int, limit_mib: int, log: str) -> Failure:
    """Return the failure of a rank that printed too much."""
    return Failure(
        blame,
        f"rank {rank} printed more than {limit_mib} MiB and was ended; remove the printing from the hot path",
        rank=rank,
        check="log-limit",
        log=log,
    )


def describe_garbled_answer(blame: Verdict, rank: int, phase: str) -> Failure:
    """Return the failure of a rank whose answer is not of the agreed form."""
    return Failure(
        blame,
        f"rank {rank} broke the judge's protocol ({phase}); a candidate must leave file descriptors alone that it "
        "did not open",
        rank=rank,
        phase=phase,
        check="protocol",
    )


def parse_error(said: Mapping[str, Any]) -> ErrorReport:
    """Return what a rank reports about an exception as plain printable text: a candidate may have written it."""
    lists = {name: [_clean_text(line) for line in _clip_list(said.get(name))] for name in ("traceback", "errors")}
    advice = _clean_text(said.get("advice")) or None
    return ErrorReport(_clean_text(said.get("type")), _clean_text(said.get("message")), advice=advice, **lists)


def _clip_list(value: Any) -> list[Any]:
    return value[:_MOST_LINES] if isinstance(value, list) else []


def _clean_text(value: Any) -> str:
    """Return one line of plain text, whatever the value is."""
    text = value[:_MOST_TEXT] if isinstance(value, str) else ""
    return "".join(char if char.isprintable() else " " for char in text)
