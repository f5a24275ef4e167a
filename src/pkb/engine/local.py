"""Judges on this machine: one candidate at a time, while others are compiled."""

import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from pkb.engine import Job, OnPhase, Phase, Site
from pkb.judge.judge import Judge
from pkb.platforms import host_platform
from pkb.record import Record
from pkb.settings import Limits


class Stopped(BaseException):
    """The engine was closed during a judgement. This is no Exception, since a judgement makes records of those."""


class LocalEngine:
    """Use as a context manager, or call close()."""

    def __init__(self, site: Site | str = "auto", limits: Limits | None = None):
        """`site` may be the name of the platform."""
        self.site = Site(site) if isinstance(site, str) else site
        self.judge = Judge(self.site.platform, limits, self.site.sandbox)
        self._limits = limits
        self._build_threads = ThreadPoolExecutor(self.site.builders, "build")
        self._judge_thread = ThreadPoolExecutor(1, "judge")
        self._closing = threading.Event()
        self._thread_local = threading.local()
        self._builders: list[Judge] = []
        self._under_way: set[Future[Record]] = set()

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, job: Job, on_phase: OnPhase = lambda phase: None) -> Future[Record]:
        record: Future[Record] = Future()
        self._under_way.add(record)
        record.add_done_callback(self._under_way.discard)
        self._build_threads.submit(self._prepare, job, on_phase, record)
        return record

    def close(self) -> None:
        self._closing.set()
        for builder in self._builders:
            builder.interrupt()
        for threads in (self._build_threads, self._judge_thread):
            threads.shutdown(wait=True, cancel_futures=True)
        for record in list(self._under_way):
            record.cancel()
        for judge in (*self._builders, self.judge):
            judge.close()

    def _prepare(self, job: Job, on_phase: OnPhase, record: Future[Record]) -> None:
        """Compile the candidate's extensions, then queue the job for the judge."""
        try:
            # What goes wrong here goes wrong again under the judge, which makes a record of it.
            with contextlib.suppress(Exception):
                if self.judge.needs_build(job.make_candidate(), job.asked):
                    on_phase(Phase.BUILDING)
                    self._build(job)
            on_phase(Phase.QUEUED)
        except (Exception, Stopped) as error:
            record.set_exception(error)
            return
        with contextlib.suppress(RuntimeError):
            # Raised once the engine is closed, which cancels the record.
            self._judge_thread.submit(self._judge, job, on_phase, record)

    def _build(self, job: Job) -> None:
        """Compile into the cache. Where that fails, the judge gets the failure, so that it does not compile again."""
        builder, candidate = self._find_builder(), job.make_candidate()
        # With a nursery from here on, which close() hangs up, the build cannot outlive the engine.
        builder.begin_nursery()
        self._stop_if_closing("build")
        if failure := builder.build_ahead(builder.pose(job.load_problem(), job.posed), candidate):
            self.judge.unbuildable[candidate.digest] = failure

    def _find_builder(self) -> Judge:
        """Return this thread's own judge for compiling, on the host: compilers need no GPU."""
        if not hasattr(self._thread_local, "builder"):
            self._thread_local.builder = Judge(host_platform().name, self._limits, self.site.sandbox)
            self._builders.append(self._thread_local.builder)
        builder: Judge = self._thread_local.builder
        return builder

    def _judge(self, job: Job, on_phase: OnPhase, record: Future[Record]) -> None:
        if not record.set_running_or_notify_cancel():
            return
        try:
            on_phase(Phase.JUDGING)
            record.set_result(self._make_record(job))
        except BaseException as error:
            record.set_exception(error)

    def _make_record(self, job: Job) -> Record:
        if job.fresh:
            self.judge.draw_new_seeds()
        setup, out = self.judge.pose(job.load_problem(), job.posed), Path(job.out) if job.out else None
        return self.judge.judge(setup, job.make_candidate(), job.asked, out=out, progress=self._stop_if_closing)

    def _stop_if_closing(self, step: str) -> None:
        """Raise Stopped once the engine is closed. A judgement calls this before each of its steps."""
        if self._closing.is_set():
            raise Stopped


ENGINE = LocalEngine
