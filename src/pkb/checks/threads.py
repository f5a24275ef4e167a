"""A candidate must not leave a thread at work: its work belongs inside the call. A thread that waits is no harm."""

import itertools
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from pkb.checks import Breach, Check, Observations
from pkb.settings import Track

_MOST_NAMED = 20
_WINDOW_S, _IDLE_S = 0.03, 5e-4
"""How long threads are observed, and the processor time that an idle one may use meanwhile."""
_FUTEX, _EPOLLS = ({"x86_64": 202, "aarch64": 98}, {"x86_64": (232, 281), "aarch64": (22,)})
"""Numbers of the system calls in which threads wait: for one another, or for a message."""
_FOR_EVER = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
_LIBRARY = os.path.dirname(threading.__file__) + os.sep
_POOL = os.path.join(_LIBRARY, "multiprocessing", "pool.py")


class ThreadCheck(Check):
    name = "threads"
    report_type = list[str]

    def __init__(self, observer: Observations):
        super().__init__(observer)
        self._before = set(threading.enumerate())

    def report(self) -> list[str]:
        """Return the names of threads that were started since, and do not merely wait to be given work."""
        left = [thread for thread in threading.enumerate() if thread not in self._before and thread.is_alive()]
        return [thread.name for thread in _select_busy(left)][:_MOST_NAMED]

    @staticmethod
    def conclude(reports: Sequence[list[str]], track: Track) -> Breach | None:
        for rank, names in enumerate(reports):
            if names:
                reason = f"rank {rank} left the thread {names[0]} running; finish inside the call"
                return Breach("CHEAT", reason, rank)
        return None


def _select_busy(threads: list[threading.Thread]) -> list[threading.Thread]:
    """Return the threads that use the processor, or that will go on by themselves after some time."""
    if not threads:
        return []
    before = [_measure_processor_s(thread) for thread in threads]
    time.sleep(_WINDOW_S)
    used = [_measure_processor_s(thread) - start for thread, start in zip(threads, before, strict=True)]
    return [thread for thread, s in zip(threads, used, strict=True) if s > _IDLE_S or not _waits_for_others(thread)]


def _measure_processor_s(thread: threading.Thread) -> float:
    # A thread that has ended meanwhile uses nothing.
    with suppress(OSError, AttributeError):
        if thread.is_alive() and thread.ident is not None:
            return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    return 0.0


def _waits_for_others(thread: threading.Thread) -> bool:
    """Whether a thread waits, without a deadline, for another thread or for a message."""
    if not thread.is_alive() or _serves_thread_pool(thread):
        return True
    try:
        number, *arguments = Path(f"/proc/self/task/{thread.native_id}/syscall").read_text().split()
        timeout = int(arguments[3], 16)
    except (OSError, ValueError, IndexError):
        return _waits_in_library(thread)
    machine = platform.machine()
    if int(number) == _FUTEX.get(machine):
        return timeout == 0
    return int(number) in _EPOLLS.get(machine, ()) and timeout in _FOR_EVER


def _waits_in_library(thread: threading.Thread) -> bool:
    """Whether a thread is inside Python's own library and none of its functions there has a timeout."""
    inner = [*itertools.takewhile(_is_of_library, _list_frames(thread))]
    return bool(inner) and all(frame.f_locals.get("timeout") is None for frame in inner)


def _serves_thread_pool(thread: threading.Thread) -> bool:
    """Whether a thread is one that multiprocessing.pool has for itself, of which one looks around now and then."""
    frames = [*_list_frames(thread)]
    return any(frame.f_code.co_filename == _POOL for frame in frames) and all(map(_is_of_library, frames))


def _list_frames(thread: threading.Thread) -> Iterator[FrameType]:
    """Yield the frames of a thread, from the innermost outwards."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_of_library(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_LIBRARY) and "-packages" not in file


CHECK = ThreadCheck
