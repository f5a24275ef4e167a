"""Have the judge's comparison look at mutants of one problem, many of them in one world.

A mutant may leave the world's ranks out of step with each other, and so spoil the next one's verdict. So a group of
mutants, or a mutant that crashes, is followed by a control: the reference itself, which must be right. Where it is not,
or where the world broke, those before the last are judged again in a fresh world, if need be each in one of its own.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import torch

from pkb.base.tensors import view_bytes
from pkb.failure import Failure
from pkb.judge.correctness.check import Wrong, check_facts, check_values
from pkb.judge.correctness.orders import draw_inputs, order_trial, wait_until_drawn
from pkb.judge.correctness.reference import Reference
from pkb.judge.correctness.results import Outputs, collect_results, fetch_tensors, run_calls
from pkb.judge.judge import Judge
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World
from pkb.protocol import messages as m
from pkb.protocol.fault_names import NOTHING
from pkb.record import Verdict
from pkb.tools.mutation.mutants import Mutant
from pkb.trial import Trial

GROUP = 8
"""Mutants from one control to the next."""
_MOST_IN_A_WORLD, _WORLD_S = 100, 300.0
"""Mutants and seconds after which a world is replaced: a candidate's has a bound on its time in all."""
_IDLE_S = 0.5
"""Ranks that use no processor for so long wait for each other."""
_LEAST_TRIAL_S, _TIMES_REFERENCE = 2.0, 20.0
"""A trial of a mutant may take these seconds, or so many times as long as the reference's in the same world."""
_SAME = 1e-9
"""The relative difference in float64 below which two results are those of one function, rounded differently."""


class MutantOutcome(StrEnum):
    REJECTED = "rejected"
    ROUNDING = "rounding"
    """Other bits, but within what the judge allows, and the same function in float64."""
    SAME_BITS = "same bits"
    """It passed with the reference's bits in every trial: it is equivalent, or no input shows the difference."""
    WITHIN_TOLERANCE = "within tolerance"
    """It passed although float64 shows that it is another function."""


@dataclass(frozen=True)
class MutantResult:
    """The outcome of one mutant in one setup."""

    mutant: Mutant
    outcome: MutantOutcome
    detail: str
    has_crashed: bool = False


class _BrokenWorld(Exception):
    """The ranks cannot be used any more; it carries what was seen."""


class MutantRunner:
    """Judges mutants of one setup. Use as a context manager."""

    def __init__(self, judge: Judge, setup: Setup):
        self.judge, self.setup = judge, setup
        self._limited = setup
        """The setup with the deadlines of this world."""
        self.reference: Reference = judge.references.get(setup, judge.pool, judge.seeds)
        self._world: World | None = None
        self._judged_in_world, self._began = 0, time.monotonic()
        self._files = 0

    def __enter__(self) -> "MutantRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def judge_all(self, mutants: Sequence[Mutant]) -> Iterator[MutantResult]:
        """Yield the result of every mutant, in their order."""
        done = 0
        while done < len(mutants):
            results, is_sound = self._judge_some(mutants[done : done + GROUP])
            done += len(results)
            # One alone began in a sound world: if it broke the world, its result holds all the same.
            yield from results if is_sound or len(results) == 1 else self._judge_again(results)

    def _judge_some(self, group: Sequence[Mutant]) -> tuple[list[MutantResult], bool]:
        """Judge mutants up to the first that crashes; return also whether the world is sound after them."""
        results: list[MutantResult] = []
        for mutant in group:
            try:
                results.append(self._judge_one(mutant))
            except _BrokenWorld as broken:
                self._close()
                return [*results, MutantResult(mutant, MutantOutcome.REJECTED, str(broken))], False
            if results[-1].has_crashed:
                # Most that leave ranks out of step crash, and the next mutant would wait for long.
                break
        if is_sound := self._is_sound():
            return results, is_sound
        self._close()
        return results, False

    def _judge_again(self, results: list[MutantResult]) -> Iterator[MutantResult]:
        """Yield the results of mutants after which the world was not sound: was it the last of them, or another?"""
        before = [result.mutant for result in results[:-1]]
        again, is_sound = self._judge_some(before)
        if is_sound and len(again) == len(before):
            yield from (*again, results[-1])
            return
        for result in results:
            self._close()
            yield self._judge_some([result.mutant])[0][0]

    def _is_sound(self) -> bool:
        """Whether the reference is still right in this world."""
        try:
            self._load("")
            self._check_trial(self.setup.checked_trials[0])
        except Failure as failure:
            _raise_if_not_theirs(failure)
            return False
        return True

    def _judge_one(self, mutant: Mutant) -> MutantResult:
        """Judge a mutant, and stop at its first wrong trial. Raise _BrokenWorld when its ranks do not answer."""
        if self._judged_in_world >= _MOST_IN_A_WORLD or time.monotonic() - self._began > _WORLD_S:
            self._close()
        self._judged_in_world += 1
        try:
            self._load(mutant.source)
            same = [self._has_same_bits(trial, self._check_trial(trial)) for trial in self.setup.all_trials]
            if all(same):
                return MutantResult(mutant, MutantOutcome.SAME_BITS, "the reference's bits in all trials")
            return self._compare_in_float64(mutant)
        except Wrong as wrong:
            return MutantResult(mutant, MutantOutcome.REJECTED, wrong.reason)
        except Failure as failure:
            _raise_if_not_theirs(failure)
            detail = f"{failure.verdict}: {failure.reason}"
            if failure.verdict is Verdict.HANG or not self.world.settle(_LEAST_TRIAL_S):
                raise _BrokenWorld(detail) from failure
            return MutantResult(mutant, MutantOutcome.REJECTED, detail, has_crashed=True)

    def _compare_in_float64(self, mutant: Mutant) -> MutantResult:
        worst = max(self._find_difference(trial) for trial in self.setup.all_trials)
        if worst <= _SAME:
            return MutantResult(mutant, MutantOutcome.ROUNDING, f"in float64 it differs by {worst:.1e} at most")
        return MutantResult(mutant, MutantOutcome.WITHIN_TOLERANCE, f"passed, but in float64 it differs by {worst:.1e}")

    def _find_difference(self, trial: Trial) -> float:
        """Return the largest difference to the oracle, in units of the typical value, with float64 in all steps."""
        setup, seeds = self._limited, self.judge.seeds
        draw_inputs(self.world, setup, seeds, trial, oracle=True)
        results = run_calls(self.world, setup, "float64")
        outputs = fetch_tensors(self.world, setup, seeds, trial, results)
        pairs = [
            (outputs[call, rank][k], expected.outputs[k].oracle)
            for (of, call, rank), expected in self.reference.calls.items()
            if of == trial
            for k in expected.judged
        ]
        return max((_measure_difference(got, right) for got, right in pairs), default=0.0)

    def _load(self, source: str) -> None:
        """Load a mutant, or for an empty source the reference."""
        file = ""
        if source:
            self._files += 1
            # Another name each time: Python keeps compiled code by name.
            path = self.world.folder / f"mutant_{self._files}.py"
            path.write_text(source, encoding="utf-8")
            file = str(path)
        order = m.LoadMutant(str(self.setup.problem.path), NOTHING, file=file)
        self.world.ask(order, "load", self.setup.limits.load_s)

    def _check_trial(self, trial: Trial) -> Outputs:
        """Run one trial and compare its results. Raise Wrong where they differ from the reference's."""
        setup, seeds = self._limited, self.judge.seeds
        order_trial(self.world, setup, seeds, trial)
        wait_until_drawn(self.world, setup)
        results = collect_results(self.world, setup, str(trial))
        check_facts(results, self.reference, trial)
        outputs = fetch_tensors(self.world, setup, seeds, trial, results)
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
            self._world = World(self.judge.nursery, self.setup.world, self.setup.limits, idle_s=_IDLE_S)
            self._world.start()
            self._judged_in_world, self._began = 0, time.monotonic()
            self._measure_reference()
        return self._world

    def _measure_reference(self) -> None:
        """Run the reference in a new world, and set the deadline of the mutants' trials there."""
        self._limited = self.setup
        start = time.monotonic()
        if not self._is_sound():
            self._close()
            at = f"{self.setup.problem.stem} in a fresh world"
            raise Failure(Verdict.ENVIRONMENT, f"the reference of {at} is not right; run it again", check="reference")
        seconds = max(_LEAST_TRIAL_S, _TIMES_REFERENCE * (time.monotonic() - start))
        limits = replace(self.setup.limits, trial_s=min(self.setup.limits.trial_s, seconds))
        self._limited = replace(self.setup, limits=limits)

    def _close(self) -> None:
        if self._world:
            self._world.end(kill=True)
            self._world = None


def _raise_if_not_theirs(failure: Failure) -> None:
    """Raise a failure that no mutant caused, such as a world that does not start: it rejects nothing."""
    if failure.verdict is Verdict.ENVIRONMENT:
        raise failure


def _measure_difference(got: torch.Tensor, right: torch.Tensor) -> float:
    if got.shape != right.shape or got.dtype != right.dtype:
        return float("inf")
    if not got.numel():
        return 0.0
    wide = torch.complex128 if right.dtype.is_complex else torch.float64
    one, other = got.to(wide), right.to(wide)
    differs = ~((one == other) | (one.isnan() & other.isnan()))
    if not differs.any():
        return 0.0
    finite = other[torch.isfinite(other)]
    typical = float(finite.abs().square().mean().sqrt()) if finite.numel() else 0.0
    worst = float((one - other)[differs].abs().max())
    return worst / typical if typical and worst == worst else float("inf")
