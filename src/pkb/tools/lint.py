"""Is this problem strong? Wrong answers go through the comparison that judges candidates, and none may pass."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from pkb.base.pytree import tensors
from pkb.base.tensors import view_bytes
from pkb.failure import Failure
from pkb.judge.correctness.check import check_trial
from pkb.judge.correctness.reference import Reference
from pkb.judge.correctness.results import Outputs, order_trial
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World
from pkb.rank.faults import FAULTS, OUTPUTS, RIGHT
from pkb.rank.model_faults import NOTHING, OTHER_LIBRARY, SKIP, STALE
from pkb.record import Verdict

SURVIVED, FALSE_ALARM = "SURVIVED", "FALSE ALARM"
_MAY_HAVE_NO_EFFECT = ("ranks-swapped", "float8")
"""Sums know no order of ranks, and integers no float8."""
_OF_MODELS = [name for name in OUTPUTS if "world" not in name]
_MOST_OPERATIONS, _MOST_WEIGHTS = 12, 40
"""Of a model with more, some are tried, the same ones every time."""

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """What became of one wrong variant, or of the right one."""

    problem: str
    dtype: str
    world: int
    variant: str
    outcome: str
    """rejected, equivalent, degenerate, no effect, passed; or SURVIVED, FALSE ALARM"""
    detail: str

    @property
    def bad(self) -> bool:
        return self.outcome in (SURVIVED, FALSE_ALARM)


@dataclass(frozen=True)
class _Variant:
    name: str
    fault: str
    """What the ranks plant."""
    without: str = ""
    """A weight that is not given."""
    right: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Under which a problem may say that it computes the same: `skip relu 3` also as `skip relu`."""
        return self.name, self.name.rpartition(" ")[0]


def lint(judge: Judge, setup: Setup) -> Iterator[Finding]:
    """Findings for the right variant, every generic fault, and the problem's own mutants."""
    bench = _Bench(judge, setup)
    try:
        for variant in bench.variants():
            outcome, detail = bench.outcome(variant)
            yield Finding(setup.problem.stem, setup.dtype, setup.world, variant.name, outcome, detail)
    finally:
        bench.close()


class _Bench:
    """One world that runs variant after variant, replaced when one of them breaks it."""

    def __init__(self, judge: Judge, setup: Setup):
        # Faults must show in the ordinary trials.
        self.judge, self.setup = judge, replace(setup, extra=())
        self.reference: Reference = judge.references.get(self.setup, judge.spares, judge.seeds)
        self._world: World | None = None

    def variants(self) -> list[_Variant]:
        own = [_Variant(name, name) for name in self.setup.problem.mutants]
        if self.setup.problem.builds:
            return [_Variant(OTHER_LIBRARY, OTHER_LIBRARY, right=True), *self._of_a_model(), *own]
        return [_Variant(RIGHT, RIGHT, right=True), *(_Variant(name, name) for name in FAULTS), *own]

    def _of_a_model(self) -> list[_Variant]:
        """Its results spoiled, an argument or a weight ignored, an operation left out."""
        problem, case = self.setup.problem, self.setup.case(0, 0)
        arguments = enumerate(zip(problem.arguments, problem.inputs(case), strict=False))
        weights = list(dict.fromkeys(told[1] for told in (self.setup.recipe(self.judge.seeds, 0) or {})["weights"]))
        return [
            *(_Variant(name, name) for name in _OF_MODELS),
            *(_Variant(f"ignore {name}", f"{STALE} {k}") for k, (name, value) in arguments if list(tensors(value))),
            *(_Variant(f"ignore {name}", NOTHING, without=name) for name in _some(weights, _MOST_WEIGHTS)),
            *(_Variant(f"skip {name} {k}", f"{SKIP} {k}") for k, name in _some(self._operations(), _MOST_OPERATIONS)),
        ]

    def _operations(self) -> list[tuple[int, str]]:
        self._load(_Variant(NOTHING, NOTHING), integers=False)
        self.setup.prepare(self.world, self.judge.seeds, trial=0)
        (answer,) = self.world.ask({"do": "operations"}, "a look at its operations", self.setup.limits.trial_s)
        return [(number, name) for number, name in answer["operations"]]

    def outcome(self, variant: _Variant) -> tuple[str, str]:
        verdict = self._verdict(variant)
        if verdict == "no effect" and not variant.right and variant.name not in _MAY_HAVE_NO_EFFECT:
            verdict = self._verdict(variant, integers=True)
        if variant.right:
            passed = verdict in (None, "no effect")
            return ("passed", "") if passed else (FALSE_ALARM, str(verdict))
        if verdict in (None, "no effect"):
            return self._survival(variant, verdict)
        return "rejected", str(verdict)

    def _survival(self, variant: _Variant, verdict: str | None) -> tuple[str, str]:
        problem = self.setup.problem
        if problem.degenerate:
            return "degenerate", problem.degenerate
        if reason := next((problem.equivalent[key] for key in variant.keys if key in problem.equivalent), None):
            return "equivalent", reason
        if verdict == "no effect" and variant.name in _MAY_HAVE_NO_EFFECT:
            return "no effect", ""
        return SURVIVED, "the same bits as the reference" if verdict else "within the tolerance"

    def _verdict(self, variant: _Variant, integers: bool = False) -> str | None:
        """How it was rejected; None when it passed; `no effect` when it passed with the reference's own bits."""
        same, setup = True, replace(self.setup, without=variant.without)
        try:
            self._load(variant, integers)
            for trial in range(setup.trials):
                order_trial(self.world, setup, self.judge.seeds, trial)
                outputs = check_trial(self.world, setup, self.reference, self.judge.seeds, trial)
                same = same and self._same_bits(trial, outputs)
        except Failure as failure:
            if failure.verdict is not Verdict.WRONG or not failure.evidence.get("wrong_at"):
                self.close()
            return f"{failure.verdict}: {failure.reason}"
        return "no effect" if same else None

    def _load(self, variant: _Variant, integers: bool) -> None:
        order = {"problem": str(self.setup.problem.path), "name": variant.fault, "integers": integers}
        self.world.ask({"do": "load_mutant", **order}, "load", self.setup.limits.load_s)

    def _same_bits(self, trial: int, outputs: Outputs) -> bool:
        for (call, rank), results in outputs.items():
            expected = self.reference.calls[trial, call, rank]
            if not all(
                torch.equal(view_bytes(results[k]), view_bytes(expected.outputs[k].reference)) for k in expected.judged
            ):
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


def _some(values: Sequence[T], most: int) -> list[T]:
    if len(values) <= most:
        return [*values]
    chosen = random.Random(0).sample(range(len(values)), most)
    return [values[k] for k in sorted(chosen)]
