"""What the reference and its oracle return: computed once for a setup, shared by all its candidates."""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from pkb.base.pytree import describe, rebuild
from pkb.failure import Failure
from pkb.judge.correctness.compare import Expected, OwnError, overflows
from pkb.judge.correctness.results import Outputs, Result, excerpts_of, handed_over, run_trial
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.pool import Spares
from pkb.judge.worlds.world import World
from pkb.protocol.spot_check import Excerpt
from pkb.record import Verdict

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


Calls = dict[tuple[int, int, int], ExpectedCall]
"""(trial, call, rank): what is expected."""


@dataclass
class Reference:
    calls: Calls = field(default_factory=dict)

    def pooled(self, measure: "Reference") -> "Reference":
        """The same calls, each allowed at least the error that the reference typically makes in `measure`."""
        return Reference({key: replace(call, outputs=_pooled(call, measure)) for key, call in self.calls.items()})

    def own_error(self, output: int) -> OwnError:
        """The reference's error in one output, over all calls that round."""
        outputs = [call.outputs[output] for call in self.calls.values() if output < len(call.outputs)]
        return OwnError.pooled([o.own for o in outputs if not o.exact])

    def largest_call(self) -> int:
        """Bytes of the largest result of one call on one rank."""
        return max(sum(leaf.nbytes for leaf in call.result.leaves) for call in self.calls.values())

    def nbytes(self) -> int:
        outputs = (output for call in self.calls.values() for output in call.outputs)
        return sum(output.reference.nbytes + output.oracle.nbytes for output in outputs)


class References:
    """References by setup, the latest kept, within a bound on memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Setup, Reference] = OrderedDict()

    def __contains__(self, setup: Setup) -> bool:
        return setup in self._kept

    def get(self, setup: Setup, spares: Spares, seeds: Seeds) -> Reference:
        if setup not in self._kept:
            self._kept[setup] = compute(setup, spares, seeds)
        self._kept.move_to_end(setup)
        while len(self._kept) > 1 and sum(r.nbytes() for r in self._kept.values()) > _CACHE_BYTES:
            self._kept.popitem(last=False)
        return self._kept[setup]


def compute(setup: Setup, spares: Spares, seeds: Seeds) -> Reference:
    reference = Reference()
    with as_reference(spares.take(setup.world), setup) as world:
        for trial in setup.all_trials:
            reference.calls |= expected_calls(world, setup, seeds, trial)
        world.dismiss()
    return reference.pooled(reference)


def expected_calls(world: World, setup: Setup, seeds: Seeds, trial: int, first: int = 0) -> Calls:
    """The calls of one trial, from `first` on, in a reference world: as they are, and by the oracle."""
    setup.prepare(world, seeds, trial, first=first)
    results, plain = _run(world, setup, seeds, trial, first)
    setup.prepare(world, seeds, trial, oracle=True, first=first)
    _, oracle = _run(world, setup, seeds, trial, first)
    calls = {}
    for result in results:
        _refuse_changes(setup, result)
        key, exact = (result.call, result.rank), setup.problem.exact or setup.whole(trial)
        outputs = [_expected(setup, t, o, exact) for t, o in zip(plain[key], oracle[key], strict=True)]
        excerpts = excerpts_of(result, setup, seeds, trial, first)
        calls[trial, *key] = ExpectedCall(result, outputs, excerpts, _judged(setup, result, trial))
    return calls


def _pooled(call: ExpectedCall, reference: Reference) -> list[Expected]:
    """The outputs with the reference's error in this call, or its typical one where this call was lucky."""
    return [
        o if o.exact else replace(o, own=o.own.at_least(reference.own_error(k))) for k, o in enumerate(call.outputs)
    ]


def as_reference(world: World, setup: Setup, compiled: str = "") -> World:
    """The world with the problem's own solution loaded, or what torch.compile makes of it."""
    try:
        load_reference(world, setup, setup.problem.path, compiled)
    except BaseException:
        world.end(kill=True)
        raise
    return world


def load_reference(world: World, setup: Setup, file: Path, compiled: str = "") -> None:
    """`file` is the problem's, where the world's ranks see it."""
    world.ask({"do": "load", "problem": str(file), "compiled": compiled}, "load", setup.limits.load_s)


def _run(world: World, setup: Setup, seeds: Seeds, trial: int, first: int) -> tuple[list[Result], Outputs]:
    results = run_trial(world, setup, "the reference's own run")
    return results, handed_over(world, setup, seeds, trial, results, first)


def _judged(setup: Setup, result: Result, trial: int) -> list[int]:
    """Which leaves the problem wants compared: it picks among numbers that stand for them."""
    tree = rebuild(result.form, [torch.tensor(k) for k in range(len(result.leaves))])
    output = setup.problem.judged(setup.case(result.rank, trial), tree[0])
    chosen: list[Tensor] = []
    describe([output, *tree[1:]], chosen)
    return [int(leaf) for leaf in chosen]


def _expected(setup: Setup, reference: Tensor, oracle: Tensor, exact: bool) -> Expected:
    if overflows(reference, oracle):
        raise Failure(
            Verdict.ENVIRONMENT,
            f"the reference of {setup.problem.stem} overflows {setup.dtype} at this size; "
            "choose another --dtype or --size",
            check="reference-finite",
        )
    return Expected.of(reference, oracle, exact)


def _refuse_changes(setup: Setup, result: Result) -> None:
    if result.changed:
        raise Failure(
            Verdict.ENVIRONMENT,
            f"the reference of {setup.problem.stem} changes {', '.join(result.changed)} in place without declaring it; "
            "add it to PROBLEM.mutates",
            check="reference-mutates",
        )
