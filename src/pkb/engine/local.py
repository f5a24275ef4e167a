"""Judgements on this machine: one at a time, while other candidates are being compiled."""

import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from pkb.engine import Job, OnPhase, Phase, Site
from pkb.failure import Failure
from pkb.judge.building import cache
from pkb.judge.building.build import entry_of
from pkb.judge.judge import Judge
from pkb.judge.screening import admit
from pkb.judge.state import Seen
from pkb.record import Record, Verdict
from pkb.settings import Limits


class Stopped(Exception):
    """The engine was closed during a judgement."""


class LocalEngine:
    """Use as a context manager, or call close()."""

    def __init__(self, site: Site | str = "auto", limits: Limits | None = None):
        """`site` may be the platform alone."""
        self.site = Site(site) if isinstance(site, str) else site
        self.judge = Judge(self.site.platform, limits, self.site.sandbox)
        self._limits = limits
        self._building = ThreadPoolExecutor(self.site.builders, "build")
        self._judging = ThreadPoolExecutor(1, "judge")
        self._closing = threading.Event()
        self._mine = threading.local()
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
        self._building.submit(self._prepare, job, on_phase, record)
        return record

    def close(self) -> None:
        self._closing.set()
        for builder in self._builders:
            builder.interrupt()
        for pool in (self._building, self._judging):
            pool.shutdown(wait=True, cancel_futures=True)
        for record in list(self._under_way):
            record.cancel()
        for judge in (*self._builders, self.judge):
            judge.close()

    def _prepare(self, job: Job, on_phase: OnPhase, record: Future[Record]) -> None:
        """Compile what there is to compile, then wait for the judge."""
        try:
            entry = entry_of(job.candidate())
            if entry and not cache.touch(entry):
                on_phase(Phase.BUILDING)
                self._compile(job)
            on_phase(Phase.QUEUED)
        except Exception as error:
            record.set_exception(error)
            return
        with contextlib.suppress(RuntimeError):
            # Raised once the engine is closed, which cancels the record.
            self._judging.submit(self._judge, job, on_phase, record)

    def _compile(self, job: Job) -> None:
        """Into the cache. What does not compile, the judge is on_phase of, so that it does not try again."""
        candidate = job.candidate()
        try:
            admit(candidate, job.asked.track)
            builder = self._builder()
            self._go_on("build")
            builder.make_ready(builder.pose(job.load_problem(), job.posed), candidate, Seen())
        except Failure as failure:
            if failure.verdict is Verdict.BUILD_FAILED:
                self.judge.unbuildable[candidate.digest] = failure

    def _builder(self) -> Judge:
        """This thread's own, with its nursery up. Compilers need no GPU, whatever the platform of the ranks."""
        if not hasattr(self._mine, "judge"):
            self._mine.judge = Judge("cpu", self._limits, self.site.sandbox)
            self._builders.append(self._mine.judge)
        builder: Judge = self._mine.judge
        _ = builder.nursery
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
        return self.judge.judge(setup, job.candidate(), job.asked, out=out, progress=self._go_on)

    def _go_on(self, step: str) -> None:
        """A judgement asks before each of its steps; between them, its own deadlines hold."""
        if self._closing.is_set():
            raise Stopped


ENGINE = LocalEngine
