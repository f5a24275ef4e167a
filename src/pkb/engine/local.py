"""Judgements on this machine: one at a time, while other candidates are being compiled."""

import contextlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from pkb.engine import Job, Phase, Site, Told
from pkb.judge import Judge, Limits, cache
from pkb.judge.admission import admit
from pkb.judge.build import entry_of
from pkb.judge.failure import Failure
from pkb.judge.seen import Seen
from pkb.record import Record, Verdict
from pkb.screen import Track


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

    def submit(self, job: Job, told: Told = lambda phase: None) -> Future[Record]:
        record: Future[Record] = Future()
        self._under_way.add(record)
        record.add_done_callback(self._under_way.discard)
        self._building.submit(self._prepare, job, told, record)
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

    def _prepare(self, job: Job, told: Told, record: Future[Record]) -> None:
        """Compile what there is to compile, then wait for the judge."""
        try:
            entry = entry_of(job.candidate)
            if entry and not cache.touch(entry):
                told(Phase.BUILDING)
                self._compile(job)
            told(Phase.QUEUED)
        except Exception as error:
            record.set_exception(error)
            return
        with contextlib.suppress(RuntimeError):
            # Raised once the engine is closed, which cancels the record.
            self._judging.submit(self._judge, job, told, record)

    def _compile(self, job: Job) -> None:
        """Into the cache. What does not compile, the judge is told of, so that it does not try again."""
        try:
            admit(job.candidate, Track.named(job.judged.get("track", Track.ANY)))
            builder = self._builder()
            self._go_on("build")
            builder.make_ready(builder.pose(job.problem, **job.posed), job.candidate, Seen())
        except Failure as failure:
            if failure.verdict is Verdict.BUILD_FAILED:
                self.judge.unbuildable[job.candidate.digest] = failure

    def _builder(self) -> Judge:
        """This thread's own, with its nursery up. Compilers need no GPU, whatever the platform of the ranks."""
        if not hasattr(self._mine, "judge"):
            self._mine.judge = Judge("cpu", self._limits, self.site.sandbox)
            self._builders.append(self._mine.judge)
        builder: Judge = self._mine.judge
        _ = builder.nursery
        return builder

    def _judge(self, job: Job, told: Told, record: Future[Record]) -> None:
        if not record.set_running_or_notify_cancel():
            return
        try:
            told(Phase.JUDGING)
            record.set_result(self._judged(job))
        except BaseException as error:
            record.set_exception(error)

    def _judged(self, job: Job) -> Record:
        if job.fresh:
            self.judge.draw_new_seeds()
        setup = self.judge.pose(job.problem, **job.posed)
        return self.judge.judge(setup, job.candidate, out=job.out, progress=self._go_on, **job.judged)

    def _go_on(self, step: str) -> None:
        """A judgement asks before each of its steps; between them, its own deadlines hold."""
        if self._closing.is_set():
            raise Stopped


ENGINE = LocalEngine
