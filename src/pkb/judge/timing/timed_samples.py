"""Results of timed calls: one is fetched from every block and every run, and many of them are checked in the end.

A candidate that works in some calls only would have to guess which ones are asked for, after each block, and which of
these are checked, after the last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import SystemRandom

from pkb.judge.correctness.check import Wrong, check_facts, check_values
from pkb.judge.correctness.reference import Reference, compute_calls, run_plainly
from pkb.judge.correctness.results import Outputs, Result, fetch_tensors, hold_timed_results
from pkb.judge.setup.sending import find_secret_call
from pkb.judge.timing.blocks import TimedWorld
from pkb.judge.worlds.rank_failures import describe_garbled_answer
from pkb.trial import Trial

_PLAUSIBLE_GROWTH = 16
"""Results whose size depends on the inputs may be this many times larger than in any trial."""
_BY_ORACLE = 2
"""Samples that are compared with the oracle even if they agree with the reference."""
_dice = SystemRandom()


@dataclass(frozen=True)
class TimedSample:
    """What one timed call returned, on every rank."""

    trial: Trial
    call: int
    results: list[Result]
    outputs: Outputs
    is_sure: bool = False
    """Whether it is checked in any case."""


def take_sample(theirs: TimedWorld, trial: Trial, calls: int, largest: int) -> TimedSample:
    """Fetch what one of the `calls` calls returned that have just ended; nobody could know which one.

    `largest` is the most bytes that one call returned in the trials.
    """
    secret = find_secret_call(theirs.setup, theirs.seeds, trial)
    call = secret if secret is not None and secret < calls else _dice.randrange(calls)
    results = hold_timed_results(theirs.world, call, theirs.setup.limits.trial_s)
    for result in results:
        # Before a byte is read, as the judge has no expected shapes yet.
        if sum(leaf.nbytes for leaf in result.leaves) > _PLAUSIBLE_GROWTH * max(largest, 1 << 20):
            raise describe_garbled_answer(theirs.world.blame, result.rank, "hand over its timed results")
    outputs = fetch_tensors(theirs.world, theirs.setup, theirs.seeds, trial, results, first=call)
    return TimedSample(trial, call, results, outputs, is_sure=call == secret)


def choose_checked(samples: Sequence[TimedSample], count: int) -> list[TimedSample]:
    """Draw the samples that are checked, in random order; to be called when there are no more calls to come."""
    sure = [sample for sample in samples if sample.is_sure]
    others = [sample for sample in samples if not sample.is_sure]
    return [*sure, *_dice.sample(others, min(len(others), max(0, count - len(sure))))]


def check_samples(samples: Sequence[TimedSample], ours: TimedWorld, expected: Reference) -> None:
    """Compare samples with what the reference returns for the same inputs. Raises Wrong.

    Only a few need the oracle, which may take many times as long as a call: those that differ from the reference by
    more than it usually differs from the oracle, and two others.
    """
    doubtful = _list_doubtful(samples, ours, expected)
    for sample in [*doubtful, *_dice.sample(samples, min(len(samples), _BY_ORACLE))]:
        _check_by_oracle(sample, ours, expected)


def _list_doubtful(samples: Sequence[TimedSample], ours: TimedWorld, expected: Reference) -> Iterator[TimedSample]:
    """Yield the samples that differ clearly from what the reference returns."""
    step = ours.plan.calls
    for start in range(0, len(samples), step):
        chunk = samples[start : start + step]
        places = [(sample.trial, sample.call) for sample in chunk]
        found = run_plainly(ours.world, ours.setup, ours.seeds, places)
        for sample, right in zip(chunk, found, strict=True):
            try:
                _compare(sample, right.pool_errors(expected))
            except Wrong:
                yield sample


def _check_by_oracle(sample: TimedSample, ours: TimedWorld, expected: Reference) -> None:
    one, trial = replace(ours.setup, calls=1), sample.trial
    right = Reference(compute_calls(ours.world, one, ours.seeds, trial, first=sample.call))
    try:
        _compare(sample, right.pool_errors(expected))
    except Wrong as wrong:
        said = wrong.reason.replace(f"{trial}, call 0", f"{trial}, call {sample.call}")
        evidence = replace(wrong.evidence, check=f"timed-{wrong.evidence.check}")
        raise Wrong(f"{said}; it was right in the trials", wrong.outputs, evidence=evidence) from None


def _compare(sample: TimedSample, right: Reference) -> None:
    check_facts(sample.results, right, sample.trial)
    check_values(sample.results, sample.outputs, right, sample.trial)
