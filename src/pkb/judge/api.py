"""`pkb.evaluate`: one call for people who have a kernel and a question. Threads and tasks share one judge."""

import asyncio
import atexit
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ParamSpec

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.platforms import find_platform
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.protocol.compile_modes import parse_baselines
from pkb.record import Record
from pkb.settings import JudgementSettings, ProblemSettings, Tolerance, find_rigor, find_track

P = ParamSpec("P")


def evaluate(
    problem: Problem | str | int,
    source_or_path: str | os.PathLike[str],
    *,
    nproc: int | None = None,
    size: str | Size | None = None,
    dtype: str = "float32",
    trials: int | None = None,
    inputs: str = "sound",
    backend: str | None = None,
    track: str = "any",
    tolerance: Tolerance | None = None,
    measure_perf: bool = False,
    rigor: str = "quick",
    baselines: Sequence[str] = (),
    platform: str = "auto",
    sandbox: str = "auto",
    out: str | os.PathLike[str] | None = None,
) -> Record:
    """Judge one candidate on one problem, and return the record.

    The candidate is a path or a source: a `Path`, or a text of one line that ends in `.py`, names a file; any other
    text is the source itself. The settings mean what the options of `pkb eval` mean; None takes the problem's default.

    One judge per platform and sandbox serves all calls of this process, so that the second is quick; it ends with the
    process. Threads may call this at the same time: they take turns, in order. So may forked and spawned processes,
    which have judges of their own. `evaluate_async` does not block an event loop.

    Raises UsageError where the problem, a setting or the file is not there. Whatever the candidate does is a verdict.
    """
    judge = _find_judge(platform, sandbox)
    asked = JudgementSettings(
        track=find_track(track),
        tolerance=tolerance,
        rigor=find_rigor(rigor) if measure_perf else None,
        baselines=tuple(parse_baselines(",".join(baselines))),
    )
    candidate = _make_candidate(source_or_path, backend)
    setup = judge.pose(problem, ProblemSettings(nproc, size, dtype, trials, inputs=inputs))
    return judge.judge(setup, candidate, asked, out=Path(out) if out else None, progress=_stop_if_cancelled)


def _make_candidate(source_or_path: str | os.PathLike[str], backend: str | None) -> Candidate:
    if isinstance(source_or_path, str) and not _is_path(source_or_path):
        return Candidate.of(source_or_path.encode(errors="surrogatepass"), backend=backend)
    return Candidate.read(Path(source_or_path), backend)


def _is_path(text: str) -> bool:
    return text.endswith(".py") and len(text.splitlines()) == 1


class _Cancelled(BaseException):
    """The task that waited for a judgement was cancelled. This is no Exception: a judgement makes records of those."""


class _Call:
    """One call of `evaluate_async`, on the thread that judges for all tasks."""

    def __init__(self) -> None:
        self.thread: int | None = None
        self.is_cancelled = False

    def run(self, judge: Callable[[], Record]) -> Record:
        self.thread = threading.get_ident()
        token = _running.set(self)
        try:
            return judge()
        finally:
            self.thread = None
            _running.reset(token)

    def cancel(self) -> None:
        """End the judgement that this call has under way, and no other one."""
        self.is_cancelled = True
        if (thread := self.thread) is not None:
            for judge in [*_judges.values()]:
                judge.turns.act_during(thread, judge.interrupt)


_running: ContextVar[_Call | None] = ContextVar("_running", default=None)


def _stop_if_cancelled(step: str) -> None:
    """Raise _Cancelled if nobody waits any more. A judgement calls this before each of its steps."""
    call = _running.get()
    if call and call.is_cancelled:
        raise _Cancelled


def _make_awaitable(judge: Callable[P, Record]) -> Callable[P, Coroutine[Any, Any, Record]]:
    @functools.wraps(judge)
    async def wait(*args: P.args, **kwargs: P.kwargs) -> Record:
        call = _Call()
        future = _find_thread().submit(call.run, functools.partial(judge, *args, **kwargs))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            call.cancel()
            raise

    wait.__name__ = wait.__qualname__ = f"{judge.__name__}_async"
    wait.__doc__ = f"""Do what `{judge.__name__}` does without blocking the event loop.

    Tasks share one judge and take turns, in order. A task that is cancelled, by a timeout or by Ctrl+C, ends its
    judgement, which leaves no record."""
    return wait


evaluate_async = _make_awaitable(evaluate)

_lock = threading.Lock()
_judges: dict[tuple[str, str], Judge] = {}
"""By platform and mode of the sandbox; they end with the process."""
_threads: list[ThreadPoolExecutor] = []
"""The one thread that judges for tasks, once it is needed. asyncio's own threads stay free for others."""


def _find_judge(platform: str, sandbox: str) -> Judge:
    with _lock:
        key = find_platform(platform).name, sandbox
        if key not in _judges:
            _judges[key] = Judge(platform, sandbox=sandbox)
            atexit.register(_judges[key].close)
        return _judges[key]


def _find_thread() -> ThreadPoolExecutor:
    with _lock:
        if not _threads:
            _threads.append(ThreadPoolExecutor(1, "pkb-evaluate"))
        return _threads[0]


def _forget_parent() -> None:
    """Let go, in a forked child, of a thread that did not come along, and of a lock that one may have held."""
    global _lock
    _lock = threading.Lock()
    _threads.clear()


os.register_at_fork(after_in_child=_forget_parent)
