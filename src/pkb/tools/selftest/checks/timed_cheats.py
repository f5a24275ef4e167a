"""Known cheats of the red team that are timed: they compute less, or claim less time, while a clock runs."""

from collections.abc import Sequence

from pkb.tools.selftest.bench import Bench
from pkb.tools.selftest.check import SelftestCheck, Step
from pkb.tools.selftest.checks.cheats import CHEATS, plan_attempts
from pkb.tools.selftest.outcome import StepOutcome

_ATTEMPTS = (
    "11h_works_in_half_of_the_calls",
    "15a_slows_the_clock",
    "15d_shortens_events",
    "12_works_on_another_stream",
    "08a_first_call_does_all",
    "23a_hogs_the_processor",
    "37m_multiplies_when_timed",
    "24_leaves_a_kernel_running",
)
_FIRST = 1


class _TimedCheats(SelftestCheck):
    name = "timed cheats"
    shows = "Cheats that need a clock are refused: by outputs of timed calls, by the judge's own clock, by conduct."
    advice = CHEATS.advice

    def plan(self, bench: Bench) -> Sequence[Step]:
        return list(plan_attempts(bench, _ATTEMPTS, _FIRST))

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        return CHEATS.summarize(done)


TIMED_CHEATS = _TimedCheats()
