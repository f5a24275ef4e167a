"""One candidate's trial against the reference: form, facts, then values, on every rank."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pkb.base.pytree import difference
from pkb.failure import Failure
from pkb.judge.correctness.compare import Mismatch, compare
from pkb.judge.correctness.reference import ExpectedCall, Reference
from pkb.judge.correctness.results import Leaf, Outputs, Result, handed_over, results_of_trial
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World
from pkb.protocol.spot_check import Excerpt
from pkb.record import Verdict
from pkb.settings import Tolerance


class Wrong(Failure):
    """A wrong answer, with the outputs that were read before it was noticed."""

    def __init__(self, reason: str, outputs: Outputs | None = None, **evidence: Any):
        super().__init__(Verdict.WRONG, reason, **evidence)
        self.outputs = outputs or {}


def check_trial(
    world: World,
    setup: Setup,
    reference: Reference,
    seeds: Seeds,
    trial: int,
    tolerance: Tolerance | None = None,
    count: bool = False,
    meanwhile: Callable[[], None] = lambda: None,
) -> Outputs:
    """Check one trial, which `order_trial` has ordered; the outputs when all are right, Wrong when one is not.

    `count` is as it was ordered; `meanwhile` may give the ranks something to do while values are compared.
    """
    results = results_of_trial(world, setup, trial, count)
    # The tensors are fetched only when their shapes are the expected ones.
    check_facts(results, reference, trial)
    outputs = handed_over(world, setup, seeds, trial, results)
    meanwhile()
    check_values(results, outputs, reference, trial, tolerance)
    return outputs


def check_facts(results: list[Result], reference: Reference, trial: int) -> None:
    for result in results:
        _check_facts(result, reference.calls[trial, result.call, result.rank], trial)


def _check_facts(result: Result, expected: ExpectedCall, trial: int) -> None:
    where: dict[str, Any] = {"rank": result.rank, "trial": trial, "call": result.call}
    at = f"rank {result.rank}, trial {trial}, call {result.call}"
    if words := difference(expected.result.form, result.form):
        raise Wrong(f"{at}: {words}; return what the reference returns", check="form", **where)
    for k, (leaf, model) in enumerate(zip(result.leaves, expected.result.leaves, strict=True)):
        if fault := _fault(leaf, model):
            check, words = fault
            raise Wrong(f"{at}, output {k}: {words}", check=check, output=k, **where)
    if result.changed:
        names = ", ".join(result.changed)
        raise Wrong(f"{at}: the call changed its argument {names}; work on a copy", check="inputs-unchanged", **where)


def _fault(leaf: Leaf, model: Leaf) -> tuple[str, str] | None:
    """The check that a leaf fails, and what to do about it."""
    if leaf.type not in ("Tensor", "Parameter"):
        return "type", f"is a {leaf.type}; return a plain torch.Tensor"
    if leaf.shape != model.shape:
        return "shape", f"has shape {list(leaf.shape)}, expected {list(model.shape)}"
    if leaf.dtype != model.dtype:
        return "dtype", f"has dtype {leaf.dtype}, expected {model.dtype}; cast the result"
    if leaf.device != model.device:
        return "device", f"is on {leaf.device}, expected {model.device}; leave results on the arguments' device"
    if not _laid_out(leaf, model):
        return "contiguity", f"has strides {leaf.strides}; return a contiguous tensor"
    if shared := set(leaf.aliases) - set(model.aliases):
        return "aliasing", f"shares memory with the argument {', '.join(sorted(shared))}; return a tensor of its own"
    if leaf.reuses and not model.reuses:
        calls = ", ".join(map(str, leaf.reuses))
        return "reuse", f"shares memory with the result of call {calls}; every call must return memory of its own"
    return None


def _laid_out(leaf: Leaf, model: Leaf) -> bool:
    """Contiguous, or as the reference's; strides of dims of one element, and of no elements, mean nothing."""
    return 0 in leaf.shape or _steps(leaf) in (_steps(model), _contiguous(model.shape))


def _steps(leaf: Leaf) -> list[int] | None:
    return (
        None
        if leaf.strides is None
        else [step for size, step in zip(leaf.shape, leaf.strides, strict=False) if size != 1]
    )


def _contiguous(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[k + 1 :]) for k, size in enumerate(shape) if size != 1]


def check_values(
    results: list[Result], outputs: Outputs, reference: Reference, trial: int, tolerance: Tolerance | None = None
) -> None:
    wrong: list[tuple[Result, int, Mismatch]] = []
    for result in results:
        expected = reference.calls[trial, result.call, result.rank]
        for k in expected.judged:
            mismatch = compare(outputs[result.call, result.rank][k], expected.outputs[k], tolerance)
            if mismatch:
                wrong.append((result, k, _located(mismatch, expected.excerpts[k], result.leaves[k])))
    if wrong:
        raise _wrong_values(wrong, outputs, trial)


def _located(mismatch: Mismatch, excerpt: Excerpt | None, leaf: Leaf) -> Mismatch:
    """With the place in the whole tensor."""
    if excerpt is None:
        return mismatch
    place = np.unravel_index(excerpt.place(mismatch.index[0]), leaf.shape)
    return replace(mismatch, index=[int(i) for i in place])


def _wrong_values(wrong: list[tuple[Result, int, Mismatch]], outputs: Outputs, trial: int) -> Wrong:
    result, k, mismatch = min(wrong, key=lambda w: (w[0].call, w[0].rank, w[1]))
    return Wrong(
        f"rank {result.rank}, trial {trial}, call {result.call}, output {k}: {mismatch.in_words()}",
        outputs=outputs,
        check="values",
        rank=result.rank,
        trial=trial,
        call=result.call,
        output=k,
        wrong_at=sorted({(r.call, r.rank) for r, _, _ in wrong}),
        **vars(mismatch),
    )
