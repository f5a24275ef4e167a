"""Check that a problem is strong: plant faults in its reference; the judge's comparison must reject every one."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from pkb.base.pytree import iterate_tensors
from pkb.base.tensors import view_bytes
from pkb.failure import Failure
from pkb.judge.correctness.check import check_facts, check_values
from pkb.judge.correctness.orders import draw_inputs, order_trial, wait_until_drawn
from pkb.judge.correctness.reference import Reference
from pkb.judge.correctness.results import Outputs, collect_results, fetch_tensors
from pkb.judge.judge import Judge
from pkb.judge.setup.drawing import describe_recipe
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World
from pkb.protocol import messages as m
from pkb.protocol.fault_names import (
    FAULTS,
    NOTHING,
    OTHER_LIBRARY,
    OTHER_ORDER,
    OUTPUT_FAULTS,
    ROUNDED_SUMS,
    SKIP,
    STALE,
)
from pkb.protocol.sums import Sums
from pkb.record import Verdict
from pkb.trial import Trial, TrialKind

SURVIVED, FALSE_ALARM = "SURVIVED", "FALSE ALARM"
_MAY_HAVE_NO_EFFECT = ("ranks-swapped", "float8")
"""Faults that may change nothing: sums do not depend on the order of ranks, and integers are not rounded."""
_MODEL_OUTPUT_FAULTS = [name for name in OUTPUT_FAULTS if "world" not in name]
_MOST_OPERATIONS, _MOST_WEIGHTS = 12, 40
"""The most operations and weights of a model that are left out; of more, a fixed sample."""
_FIRST = Trial(TrialKind.CHECK)

T = TypeVar("T")


@dataclass(frozen=True)
class LintFinding:
    """The outcome of one variant of a reference, wrong or right."""

    problem: str
    dtype: str
    world: int
    variant: str
    outcome: str
    """One of rejected, equivalent, degenerate, no effect, passed, SURVIVED, FALSE ALARM."""
    detail: str

    @property
    def is_bad(self) -> bool:
        return self.outcome in (SURVIVED, FALSE_ALARM)


@dataclass(frozen=True)
class _Variant:
    """A reference with a fault in it, or a right one that computes the same in another way."""

    name: str
    fault: str
    """The fault that ranks plant, as `pkb.protocol.fault_names` spells it."""
    without: str = ""
    """A weight that the model does not get."""
    right: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys by which a problem may declare the variant equivalent: `skip relu 3` also as `skip relu`."""
        return self.name, self.name.rpartition(" ")[0]


def lint(judge: Judge, setup: Setup) -> Iterator[LintFinding]:
    """Yield a finding for each right variant, every generic fault, and each of the problem's own mutants."""
    runner = _VariantRunner(judge, setup)
    try:
        for variant in runner.list_variants():
            outcome, detail = runner.judge_variant(variant)
            yield LintFinding(setup.problem.stem, setup.dtype, setup.world, variant.name, outcome, detail)
    finally:
        runner.close()


class _VariantRunner:
    """Runs variants one after another in one world, and replaces the world when a variant breaks it."""

    def __init__(self, judge: Judge, setup: Setup):
        # Faults must show in the ordinary trials, without the hidden one and the probe.
        self.judge, self.setup = judge, replace(setup, extra=())
        self.reference: Reference = judge.references.get(self.setup, judge.pool, judge.seeds)
        self._world: World | None = None

    def list_variants(self) -> list[_Variant]:
        own = [_Variant(name, name) for name in self.setup.problem.mutants]
        if self.setup.problem.builds:
            return [_Variant(OTHER_LIBRARY, OTHER_LIBRARY, right=True), *self._list_model_variants(), *own]
        right = [_Variant(name, name, right=True) for name in (OTHER_ORDER, ROUNDED_SUMS)]
        return [*right, *(_Variant(name, name) for name in FAULTS), *own]

    def _list_model_variants(self) -> list[_Variant]:
        """Return variants of a model with changed results, an ignored argument or weight, or a skipped operation."""
        problem, case = self.setup.problem, self.setup.case(0, _FIRST)
        values = enumerate(zip(problem.arguments, problem.inputs(case), strict=False))
        arguments = [(k, name) for k, (name, value) in values if list(iterate_tensors(value))]
        recipe = describe_recipe(self.setup, self.judge.seeds, _FIRST) or {}
        weights = list(dict.fromkeys(weight[1] for weight in recipe["weights"]))
        operations = _pick_some(self._list_operations(), _MOST_OPERATIONS)
        return [
            *(_Variant(name, name) for name in _MODEL_OUTPUT_FAULTS),
            *(_Variant(f"ignore {name}", f"{STALE} {k}") for k, name in arguments),
            *(_Variant(f"ignore {name}", NOTHING, without=name) for name in _pick_some(weights, _MOST_WEIGHTS)),
            *(_Variant(f"skip {name} {k}", f"{SKIP} {k}") for k, name in operations),
        ]

    def _list_operations(self) -> list[tuple[int, str]]:
        self._load(_Variant(NOTHING, NOTHING), integers=False)
        draw_inputs(self.world, self.setup, self.judge.seeds, _FIRST)
        (answer,) = self.world.ask(m.ListOperations(), "listing operations", self.setup.limits.trial_s)
        return answer.operations

    def judge_variant(self, variant: _Variant) -> tuple[str, str]:
        """Return the outcome of a variant, and its detail."""
        verdict = self._run(variant)
        if verdict == "no effect" and not variant.right and variant.name not in _MAY_HAVE_NO_EFFECT:
            verdict = self._run(variant, integers=True)
        if variant.right:
            passed = verdict in (None, "no effect")
            return ("passed", "") if passed else (FALSE_ALARM, str(verdict))
        if verdict in (None, "no effect"):
            return self._excuse(variant, verdict)
        return "rejected", str(verdict)

    def _excuse(self, variant: _Variant, verdict: str | None) -> tuple[str, str]:
        """Return why a wrong variant may pass; SURVIVED when there is no reason."""
        problem = self.setup.problem
        if problem.degenerate:
            return "degenerate", problem.degenerate
        if reason := next((problem.equivalent[key] for key in variant.keys if key in problem.equivalent), None):
            return "equivalent", reason
        if verdict == "no effect" and variant.name in _MAY_HAVE_NO_EFFECT:
            return "no effect", ""
        return SURVIVED, "the same bits as the reference" if verdict else "within the tolerance"

    def _run(self, variant: _Variant, integers: bool = False) -> str | None:
        """Return why a variant was rejected; None when it passed; `no effect` when it returned the reference's bits."""
        same, setup = True, replace(self.setup, without=variant.without)
        try:
            self._load(variant, integers)
            for trial in setup.checked_trials:
                outputs = self._check_trial(setup, trial)
                same = same and self._has_same_bits(trial, outputs)
        except Failure as failure:
            if failure.verdict is not Verdict.WRONG or not failure.evidence.details.get("wrong_at"):
                self.close()
            return f"{failure.verdict}: {failure.reason}"
        return "no effect" if same else None

    def _load(self, variant: _Variant, integers: bool) -> None:
        order = m.LoadMutant(str(self.setup.problem.path), variant.fault, integers)
        self.world.ask(order, "load", self.setup.limits.load_s)

    def _check_trial(self, setup: Setup, trial: Trial) -> Outputs:
        """Run one trial and compare its results. Raise Wrong where they differ from the reference's."""
        order_trial(self.world, setup, self.judge.seeds, trial)
        # As the reference's own ranks do: its bits are the same only then.
        wait_until_drawn(self.world, setup, sums=Sums.ONCE)
        results = collect_results(self.world, setup, str(trial))
        check_facts(results, self.reference, trial)
        outputs = fetch_tensors(self.world, setup, self.judge.seeds, trial, results)
        check_values(results, outputs, self.reference, trial)
        return outputs

    def _has_same_bits(self, trial: Trial, outputs: Outputs) -> bool:
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


def _pick_some(values: Sequence[T], most: int) -> list[T]:
    """Return all values, or a sample of `most` in their order; the same sample every time."""
    if len(values) <= most:
        return [*values]
    chosen = random.Random(0).sample(range(len(values)), most)
    return [values[k] for k in sorted(chosen)]
