"""The judge: pose a problem, judge candidates, time references. The story of one judgement is in judgement.py."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.failure import Failure
from pkb.judge.building import cache
from pkb.judge.building.build import find_entry
from pkb.judge.judgement import Judgement, Progress
from pkb.judge.own_errors import explain_exception
from pkb.judge.resources import Resources
from pkb.judge.screening import admit
from pkb.judge.setup.setup import Setup
from pkb.judge.state import State
from pkb.judge.timing.reference_times import Times, time_reference
from pkb.problems.problem import Problem
from pkb.problems.suite import load_problem
from pkb.protocol.channel import MOST_RANKS
from pkb.provenance import describe_environment
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor


class Judge(Resources):
    """Judges candidates, and keeps what judgements share: the secret, the expected outputs, processes that wait.

    Use it as a context manager, or call close(). Threads may share a judge: they take turns. So may processes: a forked
    child has its own secret and its own processes.
    """

    def __init__(
        self,
        platform: str = "auto",
        limits: Limits | None = None,
        sandbox: str = "auto",
        profiler: Sequence[str] = (),
    ):
        super().__init__(platform, limits or Limits(), sandbox, profiler)

    def __enter__(self) -> "Judge":
        # Look up what the record says of this machine before time is short.
        describe_environment(self.platform)
        # The nursery imports torch while the first problem is posed; why it cannot start is said in the first record.
        with contextlib.suppress(OSError):
            self.begin_nursery()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pose(self, problem: Problem | str | int, settings: ProblemSettings | None = None) -> Setup:
        """Fix everything that reference and candidate share. Raises UsageError when it cannot be posed."""
        found, asked = problem if isinstance(problem, Problem) else load_problem(problem), settings or ProblemSettings()
        world, room = asked.nproc or found.default_world, self.platform.max_ranks
        most = MOST_RANKS if room is None else min(room, MOST_RANKS)
        if world > most:
            raise UsageError(f"platform {self.platform.name} has room for {most} ranks, not {world}; lower --nproc")
        rounds = asked.trials or found.default_trials
        setup = Setup(found, found.size(asked.size), asked.dtype, world, rounds, asked.calls, self.limits)
        return setup.pose_as(asked.inputs)

    def judge(
        self,
        setup: Setup,
        candidate: Candidate,
        settings: JudgementSettings | None = None,
        *,
        out: Path | None = None,
        progress: Progress = lambda step: None,
    ) -> Record:
        """Judge one candidate, and time it if the settings have a rigor. Whatever it does is a verdict.

        An exception in the judge is one too, ENVIRONMENT: no Exception leaves this method. `progress` is called before
        each step; with `out`, the record, the source and the outputs are written to this folder.
        """
        with self._turn():
            return Judgement(self, setup, candidate, settings or JudgementSettings(), progress).run(out)

    def needs_build(self, candidate: Candidate, settings: JudgementSettings) -> bool:
        """Return whether a candidate that passes the screen has extensions that are not in the cache yet."""
        entry = find_entry(candidate)
        return entry is not None and not cache.touch(entry) and not self._is_rejected(candidate, settings)

    def build_ahead(self, setup: Setup, candidate: Candidate) -> Failure | None:
        """Compile a candidate's extensions into the cache, for another judge; return why they do not compile, if so."""
        with self._turn():
            try:
                self.build(setup, candidate, State())
            except Exception as error:
                failure = explain_exception(error)
                self.recover(failure)
                return failure if failure.verdict is Verdict.BUILD_FAILED else None
            return None

    def close(self) -> None:
        """End what is under way in other threads, and all processes. What is asked of this judge next starts anew."""
        if not self.turns.is_mine:
            self.interrupt()
        with self.turns.take(ahead=True):
            super().close()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Take a turn. Ctrl+C may leave half an answer behind: what comes next does not read it."""
        with self.turns.take():
            try:
                yield
            except Exception:
                raise
            except BaseException:
                self.close()
                raise

    def _is_rejected(self, candidate: Candidate, settings: JudgementSettings) -> bool:
        try:
            if settings.screen:
                admit(candidate, settings.track)
        except Failure:
            return True
        return False

    def time_reference(self, setup: Setup, modes: Sequence[str], rigor: Rigor) -> Iterator[tuple[str, Times]]:
        """Time the reference by itself, eager or compiled; yield each mode as soon as it is done. Raises Failure."""
        try:
            yield from time_reference(setup, self.pool, self.seeds, rigor, modes)
        except Exception as error:
            failure = explain_exception(error)
            self.recover(failure)
            raise failure from error
