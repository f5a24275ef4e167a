"""Known cheats of the red team, untimed: each must meet the verdict that its header names."""

from collections.abc import Iterator, Sequence
from functools import partial

from pkb.record import Verdict
from pkb.settings import Limits
from pkb.tools.redteam import Attempt, choose_limits, stage
from pkb.tools.selftest.bench import Bench, find_attempt
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_ATTEMPTS = (
    "06b_keeps_by_fingerprint",
    "m04a_does_not_meet",
    "27b_skips_the_last_element",
    "02a_searches_objects",
    "34b_hides_the_change",
    "18a_forges_an_answer",
    "m12a_sends_float8",
    "13a_thread_finishes_later",
    "32b_forgets_the_tail",
    "41g_reads_the_reference",
    "m06a_waits_forever",
    "23c_hogs_memory",
)
_FIRST = 2


class _Cheats(SelftestCheck):
    name = "cheats"
    shows = "Known cheats are refused, with the static screen and without it."
    advice = "do not trust verdicts of this machine; run `pkb redteam NAME --out DIR`, and please report the record"

    def plan(self, bench: Bench) -> Sequence[Step]:
        return list(plan_attempts(bench, _ATTEMPTS, _FIRST))

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        verdicts = dict.fromkeys(step.facts["verdict"] for step in done)
        return f"{len(done)} refused: {', '.join(verdicts)}"


def plan_attempts(bench: Bench, names: Sequence[str], first: int) -> Iterator[Step]:
    """Yield a step for each attempt that this platform can stage, with the screen and without it."""
    taken = 0
    for name in names:
        attempt = Attempt.read(find_attempt(f"{name}.py"))
        if attempt.find_obstacle(bench.judge.platform):
            continue
        for screened in attempt.list_modes():
            label = name if screened else f"{name} unscreened"
            yield Step(label, partial(stage_attempt, attempt, screened), Round.FIRST if taken < first else Round.MORE)
        taken += 1


def stage_attempt(attempt: Attempt, screened: bool, bench: Bench) -> StepResult:
    found = stage(bench.judge, attempt, screened, limits=_choose_limits(attempt, bench))
    outcome, posed = found.outcome, {"ranks": attempt.nproc, "tries": attempt.tries}
    facts = {"verdict": outcome.verdict, "check": outcome.check, **posed}
    if found.is_caught:
        return StepResult(Status.OK, str(found.outcome), facts)
    expected = " or ".join(map(str, attempt.find_expected(screened)))
    return StepResult(Status.FAILED, f"{found.outcome} in place of {expected}: {found.reason}", facts)


def _choose_limits(attempt: Attempt, bench: Bench) -> Limits:
    """Return the red team's memory limit, and its short deadlines for what never ends: NCCL may take long to start."""
    short = choose_limits(bench.judge.platform)
    if all(outcome.verdict == Verdict.HANG for outcome in attempt.expect):
        return short
    return Limits(memory_bytes=short.memory_bytes)


CHEATS = _Cheats()
