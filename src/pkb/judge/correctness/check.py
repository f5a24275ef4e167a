"""Compare a candidate's results with the reference's: form, facts, then values, on every rank."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pkb.base.pytree import describe_difference
from pkb.failure import Failure
from pkb.judge.correctness.compare import Mismatch, compare, compare_together
from pkb.judge.correctness.reference import ExpectedCall, Reference
from pkb.judge.correctness.results import Leaf, Outputs, Result
from pkb.protocol.spot_check import Excerpt
from pkb.record import Verdict
from pkb.settings import Tolerance
from pkb.trial import Trial

_MOST_COUNTED = 1 << 20
"""The most elements whose places in memory are listed to see whether two are the same."""


class Wrong(Failure):
    """A wrong answer, with the outputs that were read before it was noticed."""

    def __init__(self, reason: str, outputs: Outputs | None = None, **evidence: Any):
        super().__init__(Verdict.WRONG, reason, **evidence)
        self.outputs = outputs or {}


def check_facts(results: list[Result], reference: Reference, trial: Trial) -> None:
    """Raise Wrong if a result differs from the reference's in anything but its values."""
    for result in results:
        _check_result_facts(result, reference.calls[trial, result.call, result.rank], trial)


def _check_result_facts(result: Result, expected: ExpectedCall, trial: Trial) -> None:
    where: dict[str, Any] = {"rank": result.rank, "trial": trial, "call": result.call}
    at = f"rank {result.rank}, {trial}, call {result.call}"
    if words := describe_difference(expected.result.form, result.form):
        raise Wrong(f"{at}: {words}; return what the reference returns", check="form", **where)
    for k, (leaf, model) in enumerate(zip(result.leaves, expected.result.leaves, strict=True)):
        if fault := _find_fault(leaf, model):
            check, words = fault
            raise Wrong(f"{at}, output {k}: {words}", check=check, output=k, **where)
    if result.changed:
        names = ", ".join(result.changed)
        raise Wrong(f"{at}: the call changed its argument {names}; work on a copy", check="inputs-unchanged", **where)


def _find_fault(leaf: Leaf, model: Leaf) -> tuple[str, str] | None:
    """Return the check that a leaf fails, and what to do about it."""
    if leaf.type not in ("Tensor", "Parameter"):
        return "type", f"is a {leaf.type}; return a plain torch.Tensor"
    if leaf.shape != model.shape:
        return "shape", f"has shape {list(leaf.shape)}, expected {list(model.shape)}"
    if leaf.dtype != model.dtype:
        return "dtype", f"has dtype {leaf.dtype}, expected {model.dtype}; cast the result"
    if leaf.device != model.device:
        return "device", f"is on {leaf.device}, expected {model.device}; leave results on the arguments' device"
    if leaf.strides is None and model.strides is not None:
        return "layout", "is a sparse or opaque tensor; return a dense one, such as to_dense() makes"
    if leaf.strides is not None and has_overlap(leaf.shape, leaf.strides):
        return "overlap", f"has strides {leaf.strides}, so that elements share memory; return a tensor without expand()"
    if shared := set(leaf.aliases) - set(model.aliases):
        return "aliasing", f"shares memory with the argument {', '.join(sorted(shared))}; return a tensor of its own"
    if leaf.reuses and not model.reuses:
        calls = ", ".join(map(str, leaf.reuses))
        return "reuse", f"shares memory with the result of call {calls}; every call must return memory of its own"
    return None


def has_overlap(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether elements share memory, or may: a layout that is hard to tell and has many elements counts."""
    if 0 in shape:
        return False
    dims = sorted((step, size) for size, step in zip(shape, strides, strict=True) if size > 1)
    reach = 0
    for step, size in dims:
        if step <= reach:
            return math.prod(shape) > _MOST_COUNTED or _has_equal_places(dims)
        reach += step * (size - 1)
    return False


def _has_equal_places(dims: list[tuple[int, int]]) -> bool:
    places = np.zeros(1, dtype=np.int64)
    for step, size in dims:
        places = np.add.outer(places, step * np.arange(size)).reshape(-1)
    return len(np.unique(places)) < len(places)


def check_values(
    results: list[Result], outputs: Outputs, reference: Reference, trial: Trial, tolerance: Tolerance | None = None
) -> None:
    """Raise Wrong if a value differs by more than the rule, or the tolerance, allows."""
    wrong: list[tuple[Result, int, Mismatch]] = []
    for result in results:
        expected = reference.calls[trial, result.call, result.rank]
        for k in expected.judged:
            mismatch = compare(outputs[result.call, result.rank][k], expected.outputs[k], tolerance)
            if mismatch:
                wrong.append((result, k, _locate(mismatch, expected.excerpts[k], result.leaves[k])))
    if not wrong and not tolerance:
        wrong = _list_often_wrong(results, outputs, reference, trial)
    if wrong:
        raise _describe_wrong_values(wrong, outputs, trial)


def _list_often_wrong(
    results: list[Result], outputs: Outputs, reference: Reference, trial: Trial
) -> list[tuple[Result, int, Mismatch]]:
    """Return outputs of few values that err too much in all calls of the trial together, rank by rank."""
    groups: dict[tuple[int, int], list[Result]] = {}
    for result in results:
        for k in reference.calls[trial, result.call, result.rank].judged:
            groups.setdefault((result.rank, k), []).append(result)
    wrong = []
    for (rank, k), calls in groups.items():
        expected = [reference.calls[trial, result.call, rank].outputs[k] for result in calls]
        found = compare_together([(outputs[r.call, rank][k], e) for r, e in zip(calls, expected, strict=True)])
        if found:
            wrong.append((calls[found[0]], k, found[1]))
    return wrong


def _locate(mismatch: Mismatch, excerpt: Excerpt | None, leaf: Leaf) -> Mismatch:
    """Return the mismatch with its place in the whole tensor."""
    if excerpt is None:
        return mismatch
    place = np.unravel_index(excerpt.place(mismatch.index[0]), leaf.shape)
    return replace(mismatch, index=[int(i) for i in place])


def _describe_wrong_values(wrong: list[tuple[Result, int, Mismatch]], outputs: Outputs, trial: Trial) -> Wrong:
    result, k, mismatch = min(wrong, key=lambda w: (w[0].call, w[0].rank, w[1]))
    return Wrong(
        f"rank {result.rank}, {trial}, call {result.call}, output {k}: {mismatch.in_words()}",
        outputs=outputs,
        check="values",
        rank=result.rank,
        trial=trial,
        call=result.call,
        output=k,
        wrong_at=sorted({(r.call, r.rank) for r, _, _ in wrong}),
        **vars(mismatch),
    )
