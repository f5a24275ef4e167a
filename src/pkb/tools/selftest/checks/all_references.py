"""All other references, as far as the time allows."""

from collections.abc import Sequence
from functools import partial

from pkb.problems.suite import find_suite
from pkb.tools.selftest.bench import Bench
from pkb.tools.selftest.check import SelftestCheck, Step
from pkb.tools.selftest.checks.references import REFERENCES, SAMPLE, judge_reference
from pkb.tools.selftest.outcome import StepOutcome


class _AllReferences(SelftestCheck):
    name = "all references"
    shows = "The other problems work here too; --minutes gives them more time."
    advice = REFERENCES.advice

    def plan(self, bench: Bench) -> Sequence[Step]:
        sampled = {name for name, _ in SAMPLE}
        others = [stem for stem in find_suite("parallel").stems if stem not in sampled]
        return [Step(stem, partial(judge_reference, stem, "float32")) for stem in others]

    def summarize(self, done: Sequence[StepOutcome]) -> str:
        return f"{len(done)} more are CORRECT"


ALL_REFERENCES = _AllReferences()
