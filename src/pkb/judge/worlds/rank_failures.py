"""What there is to say of ranks that do not answer as they should: the verdict, the sentence, the evidence.

`blame` is the verdict when nothing more is known: CRASH for candidates, ENVIRONMENT for references.
"""

import signal
from collections.abc import Mapping, Sequence
from typing import Any

from pkb.failure import Failure
from pkb.record import Verdict

_MOST_LINES, _MOST_TEXT = 40, 4000


def raised(blame: Verdict, rank: int, phase: str, error: dict[str, Any]) -> Failure:
    if error["type"] == "BuildError":
        reason = f"{error['message']}; all errors are in the evidence"
        return Failure(Verdict.BUILD_FAILED, reason, rank=rank, phase=phase, **error)
    verdict = Verdict.BUILD_FAILED if phase == "load" and blame is Verdict.CRASH else blame
    advice = f"; {error['advice']}" if error.get("advice") else ""
    reason = f"rank {rank} raised {error['type']} in {phase}: {error['message']}{advice}"
    return Failure(verdict, reason, rank=rank, phase=phase, **error)


def gone(blame: Verdict, rank: int, phase: str, code: int | None, log: str) -> Failure:
    return Failure(
        blame,
        f"rank {rank} {_in_words(code)} in {phase} before it had answered; the end of its log is in the evidence",
        rank=rank,
        phase=phase,
        exit_code=code,
        log=log,
    )


def _in_words(code: int | None) -> str:
    if code is None:
        return "closed its channel"
    if code < 0:
        named = -code in {*signal.Signals}
        return f"was killed by {signal.Signals(-code).name if named else f'signal {-code}'}"
    return f"exited with code {code}"


def hung(blame: Verdict, phase: str, seconds: float, stacks: Mapping[int, Sequence[str]]) -> Failure:
    """`stacks` are of the ranks that have not answered."""
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


def flooded(blame: Verdict, rank: int, limit_mib: int, log: str) -> Failure:
    return Failure(
        blame,
        f"rank {rank} printed more than {limit_mib} MiB and was ended; remove the printing from the hot path",
        rank=rank,
        check="log-limit",
        log=log,
    )


def parse_error(error: Any) -> dict[str, Any]:
    """What a rank says about an exception, in the form that it should have: a candidate may have said it."""
    said = error if isinstance(error, dict) else {}
    lists = {name: [_printable(line) for line in _listed(said.get(name))] for name in ("traceback", "errors")}
    texts = {name: _printable(said.get(name)) for name in ("type", "message", "advice")}
    return {name: value for name, value in {**texts, **lists}.items() if value or name in ("type", "message")}


def _listed(value: Any) -> list[Any]:
    return value[:_MOST_LINES] if isinstance(value, list) else []


def _printable(value: Any) -> str:
    """One line of plain text, however it came."""
    text = value[:_MOST_TEXT] if isinstance(value, str) else ""
    return "".join(char if char.isprintable() else " " for char in text)
