"""The expected results: what the reference and its oracle return, computed once for a setup."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from pkb.base.pytree import rebuild, take_apart
from pkb.failure import Failure
from pkb.judge.correctness.compare import Expected, OwnError, overflows
from pkb.judge.correctness.orders import draw_calls, draw_inputs, start_reference
from pkb.judge.correctness.results import Outputs, Result, fetch_excerpts, fetch_tensors, find_excerpts, run_calls
from pkb.judge.setup.drawing import Place, choose_excerpts
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import HIDDEN, Setup
from pkb.judge.worlds.pool import WorldPool
from pkb.judge.worlds.world import World
from pkb.protocol.spot_check import Excerpt
from pkb.protocol.sums import Sums
from pkb.record import Verdict
from pkb.trial import Trial

_CACHE_BYTES = 1 << 30


@dataclass(frozen=True)
class ExpectedCall:
    """The right answer of one call on one rank."""

    result: Result
    outputs: list[Expected]
    """Every output tensor, or an excerpt of it, in the order of the result's leaves."""
    excerpts: list[Excerpt | None]
    judged: list[int]
    """The outputs whose values have a defined meaning."""
    has_outliers: bool = False
    """Whether a few of the call's inputs are large, so that its errors are no measure for other calls."""


Calls = dict[tuple[Trial, int, int], ExpectedCall]
"""(trial, call, rank): what is expected."""


@dataclass
class Reference:
    calls: Calls = field(default_factory=dict)
    measured: Calls = field(default_factory=dict)
    """The same calls, each with the error that the reference made in it."""

    def pool_errors(self, measure: "Reference") -> "Reference":
        """Return the same calls, each allowed at least the error that the reference typically makes in `measure`."""
        typical = {outliers: measure.find_errors(outliers) for outliers in (False, True)}
        calls = {key: (call, typical[call.has_outliers]) for key, call in self.calls.items()}
        return Reference({key: replace(call, outputs=_pool_errors(call, own)) for key, (call, own) in calls.items()})

    def find_errors(self, outliers: bool) -> list[tuple[OwnError, OwnError]]:
        """Return the reference's errors in each output, own and stepwise, over all calls that round and are judged.

        Calls that have outliers among their inputs are not mixed with those that have none.
        """
        calls = [call for call in self.calls.values() if call.has_outliers is outliers]
        count = max((len(call.outputs) for call in calls), default=0)
        return [_pool_output(calls, output) for output in range(count)]

    def find_largest_call(self) -> int:
        """Return the bytes of the largest result of one call on one rank."""
        return max(sum(leaf.nbytes for leaf in call.result.leaves) for call in self.calls.values())

    def nbytes(self) -> int:
        outputs = (output for call in self.calls.values() for output in call.outputs)
        return sum(output.reference.nbytes + output.oracle.nbytes for output in outputs)


def _pool_output(calls: Sequence[ExpectedCall], output: int) -> tuple[OwnError, OwnError]:
    outputs = [call.outputs[output] for call in calls if output in call.judged]
    rounded = [one for one in outputs if not one.exact]
    return OwnError.pool([one.own for one in rounded]), OwnError.pool([one.stepwise for one in rounded])


class References:
    """References by setup, the latest kept, within a bound on memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Setup, Reference] = OrderedDict()

    def __contains__(self, setup: Setup) -> bool:
        return setup in self._kept

    def get(self, setup: Setup, pool: WorldPool, seeds: Seeds) -> Reference:
        if setup not in self._kept:
            self._kept[setup] = compute_reference(setup, pool, seeds, self._find_known(setup))
        self._kept.move_to_end(setup)
        while len(self._kept) > 1 and sum(r.nbytes() for r in self._kept.values()) > _CACHE_BYTES:
            self._kept.popitem(last=False)
        return self._kept[setup]

    def _find_known(self, setup: Setup) -> Calls:
        """Return the calls of all trials that a setup with another hidden size shares with this one."""
        twins = (kept for other, kept in self._kept.items() if replace(other, hidden=setup.hidden) == setup)
        measured = next(twins, Reference()).measured
        return {key: call for key, call in measured.items() if key[0] != HIDDEN}


def compute_reference(setup: Setup, pool: WorldPool, seeds: Seeds, known: Calls | None = None) -> Reference:
    """Run the reference in all trials of a setup, except those whose calls are known."""
    calls = dict(known or {})
    trials = [trial for trial in setup.all_trials if (trial, 0, 0) not in calls]
    with start_reference(pool.take_reference(setup.world), setup) as world:
        for trial in trials:
            calls |= compute_calls(world, setup, seeds, trial)
        world.dismiss()
    measured = Reference(calls)
    return replace(measured.pool_errors(measured), measured=calls)


def compute_calls(world: World, setup: Setup, seeds: Seeds, trial: Trial, first: int = 0) -> Calls:
    """Run the calls of one trial, from `first` on, in a reference world: in its dtype, and by the oracle.

    In its dtype they run twice where ranks add up 16-bit floats: rounded once, and after every rank.
    """
    exact = setup.problem.exact or setup.is_whole(trial)
    draw_inputs(world, setup, seeds, trial, first=first)
    results, plain = _run(world, setup, seeds, trial, first, Sums.ONCE)
    stepwise = plain
    if not exact and any(result.has_added for result in results):
        draw_inputs(world, setup, seeds, trial, first=first)
        _, stepwise = _run(world, setup, seeds, trial, first, Sums.STEPWISE)
    draw_inputs(world, setup, seeds, trial, oracle=True, first=first)
    _, oracle = _run(world, setup, seeds, trial, first)
    calls = {}
    for result in results:
        _refuse_changes(setup, result)
        key = (result.call, result.rank)
        triples = zip(plain[key], oracle[key], stepwise[key], strict=True)
        outputs = [_expect(setup, t, o, exact, s) for t, o, s in triples]
        excerpts = find_excerpts(result, setup, seeds, trial, first)
        judged, outliers = _select_judged(setup, result, trial), setup.has_outliers(trial)
        calls[trial, *key] = ExpectedCall(result, outputs, excerpts, judged, outliers)
    return calls


def run_plainly(world: World, setup: Setup, seeds: Seeds, places: Sequence[Place]) -> list[Reference]:
    """Run some timed calls in a reference world, as they are; return what each of them, as call 0, should return.

    Nothing is known of the reference's own error in them, so that it counts as none.
    """
    several = replace(setup, calls=len(places))
    draw_calls(world, several, seeds, places)
    results = run_calls(world, several, "the reference's own run")
    wanted = {
        (r.call, r.rank): choose_excerpts(setup, seeds, *places[r.call], r.rank, [leaf.shape for leaf in r.leaves])
        for r in results
    }
    outputs = fetch_excerpts(world, results, wanted, setup.limits.trial_s)
    found = [Reference() for _ in places]
    for result in results:
        key, (trial, _) = (result.call, result.rank), places[result.call]
        right = [Expected.of(tensor, tensor, setup.problem.exact) for tensor in outputs[key]]
        call = ExpectedCall(replace(result, call=0), right, wanted[key], _select_judged(setup, result, trial))
        found[result.call].calls[trial, 0, result.rank] = call
    return found


def _pool_errors(call: ExpectedCall, typical: Sequence[tuple[OwnError, OwnError]]) -> list[Expected]:
    """Return the outputs with the reference's error in this call, or its typical one where this call was lucky."""
    # A call that is measured by others may have more outputs than they.
    errors = [*typical, *[(OwnError(0.0, 0.0), OwnError(0.0, 0.0))] * len(call.outputs)]
    return [one if one.exact else one.allow_at_least(*errors[k]) for k, one in enumerate(call.outputs)]


def _run(
    world: World, setup: Setup, seeds: Seeds, trial: Trial, first: int, sums: Sums = Sums.NATIVE
) -> tuple[list[Result], Outputs]:
    results = run_calls(world, setup, "the reference's own run", sums)
    return results, fetch_tensors(world, setup, seeds, trial, results, first)


def _select_judged(setup: Setup, result: Result, trial: Trial) -> list[int]:
    """Return the leaves that the problem wants compared: it picks among numbers that stand for them."""
    tree = rebuild(result.form, [torch.tensor(k) for k in range(len(result.leaves))])
    output = setup.problem.select_outputs(setup.case(result.rank, trial), tree[0])
    chosen: list[Tensor] = []
    take_apart([output, *tree[1:]], chosen)
    return [int(leaf) for leaf in chosen]


def _expect(setup: Setup, reference: Tensor, oracle: Tensor, exact: bool, stepwise: Tensor) -> Expected:
    if overflows(reference, oracle):
        raise Failure(
            Verdict.ENVIRONMENT,
            f"the reference of {setup.problem.stem} overflows {setup.dtype} at this size; "
            "choose another --dtype or --size",
            check="reference-finite",
        )
    expected = Expected.of(reference, oracle, exact)
    return expected if exact or stepwise is reference else expected.allow_errors_of(stepwise)


def _refuse_changes(setup: Setup, result: Result) -> None:
    if result.changed:
        raise Failure(
            Verdict.ENVIRONMENT,
            f"the reference of {setup.problem.stem} changes {', '.join(result.changed)} in place without declaring it; "
            "add it to PROBLEM.mutates",
            check="reference-mutates",
        )
