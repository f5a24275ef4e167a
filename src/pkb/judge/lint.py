"""Is this problem strong? Wrong answers go through the comparison that judges candidates, and none may pass."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from pkb.judge.check import Outputs, check_trial
from pkb.judge.compare import raw
from pkb.judge.failure import Failure
from pkb.judge.faults import FAULTS, RIGHT
from pkb.judge.judge import Judge
from pkb.judge.reference import Reference
from pkb.judge.trials import Setup
from pkb.judge.world import World
from pkb.record import Verdict

SURVIVED, FALSE_ALARM = "SURVIVED", "FALSE ALARM"
_MAY_HAVE_NO_EFFECT = ("ranks-swapped", "float8")
"""Sums know no order of ranks, and integers no float8."""


@dataclass(frozen=True)
class Finding:
    """What became of one wrong variant, or of the right one."""

    problem: str
    dtype: str
    world: int
    variant: str
    outcome: str
    """rejected, equivalent, no effect, passed; or SURVIVED, FALSE ALARM"""
    detail: str

    @property
    def bad(self) -> bool:
        return self.outcome in (SURVIVED, FALSE_ALARM)


def lint(judge: Judge, setup: Setup) -> Iterator[Finding]:
    """Findings for the right variant, every generic fault, and the problem's own mutants."""
    bench = _Bench(judge, setup)
    try:
        for variant in (RIGHT, *FAULTS, *setup.problem.mutants):
            outcome, detail = bench.outcome(variant)
            yield Finding(setup.problem.stem, setup.dtype, setup.world, variant, outcome, detail)
    finally:
        bench.close()


class _Bench:
    """One world that runs variant after variant, replaced when one of them breaks it."""

    def __init__(self, judge: Judge, setup: Setup):
        # Faults must show in the ordinary trials.
        self.judge, self.setup = judge, replace(setup, extra=())
        self.reference: Reference = judge.references.get(self.setup, judge.nursery, judge.seeds)
        self._world: World | None = None

    def outcome(self, variant: str) -> tuple[str, str]:
        verdict = self._verdict(variant)
        if verdict == "no effect" and variant not in (RIGHT, *_MAY_HAVE_NO_EFFECT):
            verdict = self._verdict(variant, integers=True)
        if variant == RIGHT:
            passed = verdict in (None, "no effect")
            return ("passed", "") if passed else (FALSE_ALARM, str(verdict))
        if verdict in (None, "no effect"):
            return self._survival(variant, verdict)
        return "rejected", str(verdict)

    def _survival(self, variant: str, verdict: str | None) -> tuple[str, str]:
        if variant in self.setup.problem.equivalent:
            return "equivalent", self.setup.problem.equivalent[variant]
        if verdict == "no effect" and variant in _MAY_HAVE_NO_EFFECT:
            return "no effect", ""
        return SURVIVED, "the same bits as the reference" if verdict else "within the tolerance"

    def _verdict(self, variant: str, integers: bool = False) -> str | None:
        """How it was rejected; None when it passed; `no effect` when it passed with the reference's own bits."""
        same = True
        try:
            self._load(variant, integers)
            for trial in range(self.setup.trials):
                outputs = check_trial(self.world, self.setup, self.reference, self.judge.seeds, trial)
                same = same and self._same_bits(trial, outputs)
        except Failure as failure:
            if failure.verdict is not Verdict.WRONG or not failure.evidence.get("wrong_at"):
                self.close()
            return f"{failure.verdict}: {failure.reason}"
        return "no effect" if same else None

    def _load(self, variant: str, integers: bool) -> None:
        order = {"do": "load_mutant", "problem": str(self.setup.problem.path), "name": variant, "integers": integers}
        self.world.ask(order, "load", self.setup.limits.load_s)

    def _same_bits(self, trial: int, outputs: Outputs) -> bool:
        for (call, rank), tensors in outputs.items():
            expected = self.reference.calls[trial, call, rank]
            if not all(torch.equal(raw(tensors[k]), raw(expected.outputs[k].reference)) for k in expected.judged):
                return False
        return True

    @property
    def world(self) -> World:
        if self._world is None:
            self._world = World(self.judge.nursery, self.setup.world, self.setup.limits)
            self._world.start()
        return self._world

    def close(self) -> None:
        if self._world:
            self._world.end(kill=True)
            self._world = None
