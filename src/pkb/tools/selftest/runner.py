"""Run the checks of the self-test in the time that is allowed, and make the record. Read this file top to bottom."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pkb.base.printable import clean_line
from pkb.base.schema import dump, parse
from pkb.errors import UsageError
from pkb.judge.judge import Judge
from pkb.judge.own_errors import explain_exception
from pkb.platforms import find_platform, load_platforms
from pkb.provenance import describe_environment
from pkb.record import Environment
from pkb.tools.selftest.anonymous import anonymize
from pkb.tools.selftest.bench import Bench, choose_ranks
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.checks import CHECKS
from pkb.tools.selftest.outcome import CheckOutcome, SelftestRecord, Status, StepOutcome, find_worst

_RESERVE_SHARE, _MOST_RESERVE_S = 0.06, 20.0
"""The part of the time that is kept for closing the judge."""
_TIME_IS_UP, _INTERRUPTED = "the time was up (--minutes)", "interrupted"
_LONGEST_TEXT = 600

OnStep = Callable[[str, StepOutcome], None]
"""Called with the name of the check and the outcome of each step that was taken."""


@dataclass
class Selftest:
    platform: str = "auto"
    nproc: int | None = None
    minutes: float = 5.0
    checks: Sequence[SelftestCheck] = CHECKS
    on_step: OnStep = lambda check, step: None
    started: float = field(default_factory=time.monotonic)
    """When the time began to run: the caller's imports count too."""

    def __post_init__(self) -> None:
        self._outcomes: dict[str, dict[str, StepOutcome]] = {check.name: {} for check in self.checks}
        self._environment = Environment(self.platform)
        self._ranks = self.nproc or 1
        self._ended_by: str | None = None
        """Why no further judgement is begun."""

    def run(self) -> SelftestRecord:
        """Run all checks. Whatever this machine lacks becomes an outcome; raises UsageError for a user's mistake."""
        if self.platform not in ("auto", *load_platforms()):
            find_platform(self.platform)
        try:
            with self._open_bench() as bench:
                self._run_checks(bench)
        except KeyboardInterrupt:
            self._ended_by = _INTERRUPTED
        return self._make_record()

    @contextlib.contextmanager
    def _open_bench(self) -> Iterator[Bench | None]:
        """Yield the bench; None where there can be no judge, which is then the outcome of the first check."""
        try:
            platform = find_platform(self.platform)
            self._ranks = choose_ranks(platform, self.nproc)
            judge = Judge(platform.name)
            self._environment = describe_environment(platform)
        except Exception as error:
            self._note(self.checks[0], StepOutcome("platform", Status.FAILED, _explain(error)))
            yield None
            return
        with judge:
            yield Bench(judge, self._ranks)

    def _run_checks(self, bench: Bench | None) -> None:
        if bench is None:
            return
        plans = [(check, self._plan(check, bench)) for check in self.checks]
        with _limit_time(bench.judge, self._ends_at):
            for order in (Round.FIRST, Round.MORE):
                self._run_round(bench, plans, order)
        self._run_round(bench, plans, Round.LAST)
        self._environment = describe_environment(bench.judge.platform, bench.sandbox)

    def _plan(self, check: SelftestCheck, bench: Bench) -> list[Step]:
        """Return the steps of a check, all of them noted as not run yet; a plan that fails is a step that fails."""
        try:
            steps = [*check.plan(bench)]
        except Exception as error:
            self._note(check, StepOutcome("plan", Status.FAILED, _explain(error)))
            return []
        for step in steps:
            self._outcomes[check.name][step.name] = StepOutcome(step.name, Status.NOT_RUN, "")
        return steps

    def _run_round(self, bench: Bench, plans: list[tuple[SelftestCheck, list[Step]]], order: Round) -> None:
        for check, steps in plans:
            for step in steps:
                if step.round is order:
                    self._run_step(bench, check, step)

    def _run_step(self, bench: Bench, check: SelftestCheck, step: Step) -> None:
        if step.round is not Round.LAST and (self._ended_by or self._is_time_up):
            self._ended_by = self._ended_by or _TIME_IS_UP
            return
        start = time.monotonic()
        result = self._take_step(bench, step)
        seconds = round(time.monotonic() - start, 2)
        text = clean_line(result.text, _LONGEST_TEXT)
        self._note(check, StepOutcome(step.name, result.status, text, seconds, result.facts))

    def _take_step(self, bench: Bench, step: Step) -> StepResult:
        try:
            if step.round is not Round.LAST:
                bench.note_nursery()
            result = step.take(bench)
        except UsageError as error:
            return StepResult(Status.NOT_RUN, str(error))
        except Exception as error:
            result = StepResult(Status.FAILED, _explain(error))
        except KeyboardInterrupt:
            self._ended_by = _INTERRUPTED
            return StepResult(Status.NOT_RUN, _INTERRUPTED)
        if result.status is Status.FAILED and step.round is not Round.LAST and self._is_time_up:
            # The judge was stopped in the middle of it.
            return StepResult(Status.NOT_RUN, _TIME_IS_UP)
        return result

    def _note(self, check: SelftestCheck, outcome: StepOutcome) -> None:
        shared = replace(outcome, text=anonymize(outcome.text), facts=anonymize(dump(outcome.facts)))
        self._outcomes[check.name][outcome.name] = shared
        self.on_step(check.name, outcome)

    @property
    def _ends_at(self) -> float:
        allowed = 60 * self.minutes
        return self.started + allowed - min(_MOST_RESERVE_S, _RESERVE_SHARE * allowed)

    @property
    def _is_time_up(self) -> bool:
        return time.monotonic() >= self._ends_at

    def _make_record(self) -> SelftestRecord:
        checks = [self._conclude(check) for check in self.checks]
        return SelftestRecord(
            status=_judge_outcomes(checks),
            platform=self._environment.platform,
            ranks=self._ranks,
            minutes=self.minutes,
            seconds=round(time.monotonic() - self.started, 1),
            interrupted=self._ended_by == _INTERRUPTED,
            environment=parse(Environment, anonymize(dump(self._environment))),
            checks=checks,
            when=datetime.now(UTC).isoformat(timespec="minutes"),
        )

    def _conclude(self, check: SelftestCheck) -> CheckOutcome:
        """Return the outcome of a check; of steps that were not begun, say why."""
        why = self._ended_by or "there is no judge here: see the check that failed"
        steps = [one if one.text else replace(one, text=why) for one in self._outcomes[check.name].values()]
        return check.conclude(steps or [StepOutcome("plan", Status.NOT_RUN, why)])


def _judge_outcomes(checks: Sequence[CheckOutcome]) -> Status:
    worst = find_worst([check.status for check in checks])
    return Status.FAILED if worst in (Status.FAILED, Status.NOT_RUN) else Status.OK


def _explain(error: Exception) -> str:
    return clean_line(explain_exception(error).reason, _LONGEST_TEXT)


@contextlib.contextmanager
def _limit_time(judge: Judge, ends_at: float) -> Iterator[None]:
    """Stop the judgement that is under way when the time is up: it fails at once."""
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(max(0.5, ends_at - time.monotonic())):
            if time.monotonic() >= ends_at:
                judge.interrupt()

    watcher = threading.Thread(target=watch, name="pkb-selftest-time", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_done.set()
        watcher.join()
