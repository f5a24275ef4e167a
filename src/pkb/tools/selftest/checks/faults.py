"""Faults planted in references: every wrong variant must be rejected, and the right one accepted."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from pkb.tools.lint import lint
from pkb.tools.selftest.bench import Bench
from pkb.tools.selftest.check import Round, SelftestCheck, Step, StepResult
from pkb.tools.selftest.outcome import Status, StepOutcome

_PROBLEMS = (
    ("13_gemm_allreduce", "bfloat16"),
    ("1_allreduce", "float32"),
    ("45_reducescatter_fused_rmsnorm", "float32"),
)
_RANKS = 2


class _Faults(SelftestCheck):
    name = "planted faults"
    shows = "Wrong variants of references are rejected by the comparison, and a right variant passes."
    advice = "do not trust verdicts of this machine; run `pkb lint PROBLEM --verbose`, and please report the record"

    def plan(self, bench: Bench) -> Sequence[Step]:
        return [
            Step(f"{name} {dtype}", partial(_lint, name, dtype), Round.MORE if number else Round.FIRST)
            for number, (name, dtype) in enumerate(_PROBLEMS)
        ]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        rejected = sum(step.facts["outcomes"].get("rejected", 0) for step in done)
        return f"{rejected} wrong variants of {len(done)} references rejected, {len(done)} right ones passed"


def _lint(name: str, dtype: str, bench: Bench) -> StepResult:
    findings = list(lint(bench.judge, bench.pose(name, _RANKS, dtype=dtype)))
    bad = [finding for finding in findings if finding.is_bad]
    facts = {"outcomes": dict(Counter(finding.outcome for finding in findings))}
    if bad:
        return StepResult(Status.FAILED, f"{bad[0].variant} {bad[0].outcome}: {bad[0].detail}", facts)
    return StepResult(Status.OK, f"{facts['outcomes']['rejected']} rejected", facts)


FAULTS = _Faults()
