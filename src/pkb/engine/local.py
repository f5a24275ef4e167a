"""Judgements on this machine, one at a time, beside whatever else the process does."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from pkb.engine import Job
from pkb.judge import Judge, Limits
from pkb.record import Record


class Stopped(Exception):
    """The engine was closed during a judgement."""


class LocalEngine:
    """Use as a context manager, or call close()."""

    def __init__(self, platform: str = "auto", limits: Limits | None = None, sandbox: str = "auto"):
        self.judge = Judge(platform, limits, sandbox)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")
        self._closing = threading.Event()

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, job: Job) -> Future[Record]:
        return self._worker.submit(self._judged, job)

    def close(self) -> None:
        self._closing.set()
        self._worker.shutdown(wait=True, cancel_futures=True)
        self.judge.close()

    def _judged(self, job: Job) -> Record:
        setup = self.judge.pose(job.problem, **job.posed)
        return self.judge.judge(setup, job.candidate, out=job.out, progress=self._go_on, **job.judged)

    def _go_on(self, step: str) -> None:
        """A judgement asks before each of its steps; between them, its own deadlines hold."""
        if self._closing.is_set():
            raise Stopped
