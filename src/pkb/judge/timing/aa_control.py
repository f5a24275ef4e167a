"""Two worlds that run the same code, before one of them is given a candidate's.

Processes are born unequal: on an H200 one is faster than another by some percent, for good, whatever they run. What the
reference's times in the two worlds differ by is no difference of code, and is taken out of the candidate's.
"""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.reference import Reference, as_reference, load_reference
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import FIRST_CONTROL, Setup
from pkb.judge.timing.blocks import Plan, Side, rounds
from pkb.judge.worlds.pool import Spares
from pkb.judge.worlds.world import World
from pkb.platforms import Platform
from pkb.record import Verdict
from pkb.settings import Rigor
from pkb.speedup import Spans, bootstrap, is_narrow, ratios, typical

_LONG_US, _LONG_ALONE_US = 1000.0, 500.0
"""Calls of which it does not matter in which process they are made; those of a single rank, by the speed of light."""


@dataclass(frozen=True)
class Control:
    rigor: Rigor
    ours: Side
    """The reference, warm, in the world that the candidate will take turns with."""
    spans: dict[str, Spans]
    """Of the reference in both worlds, by the side that each is to be; empty where that tells nothing."""

    @property
    def ratios(self) -> list[float]:
        return ratios(*self.spans.values()) if self.spans else [1.0]

    def facts(self) -> dict[str, Any]:
        """For the record."""
        if not self.spans:
            return {}
        times = {f"{name}_us": typical(spans) for name, spans in self.spans.items()}
        ratio, interval = statistics.median(self.ratios), bootstrap(self.ratios)
        return {**times, "ratio": ratio, "interval": interval, "blocks_us": self.spans}


def is_needed(setup: Setup, platform: Platform) -> bool:
    if not platform.unequal or setup.world > 1:
        return platform.unequal
    light = setup.light_us(platform)
    return light is None or light < _LONG_ALONE_US


@contextmanager
def controlled(
    candidate: World | None,
    setup: Setup,
    seeds: Seeds,
    expected: Reference,
    spares: Spares,
    rigor: Rigor,
    worlds: int,
) -> Iterator[Control]:
    """The reference in a world of its own, which stays until the candidate has been judged.

    For a control it runs in the candidate's world too, if that is given: nothing is loaded there yet. `worlds` will be
    timed.
    """
    with as_reference(spares.take(setup.world), setup) as reference:
        plan = Plan.of(reference, setup, seeds, rigor, worlds, expected.largest_call())
        ours = Side("reference", reference, plan, setup, seeds)
        ours.warm_up(rigor, setup.limits.trial_s, FIRST_CONTROL)
        try:
            yield Control(rigor, ours, _of_identical_code(ours, candidate, rigor) if candidate else {})
        except Wrong:
            # These ranks are well.
            reference.dismiss()
            raise


def _of_identical_code(ours: Side, candidate: World, rigor: Rigor) -> dict[str, Spans]:
    # Where calls wait for the device, it is the host's moods that would be taken for the processes'.
    if ours.warm_us > _LONG_US or not ours.keeps_ahead:
        return {}
    twin = Side("candidate", candidate, ours.plan, ours.setup, ours.seeds)
    with _trusted(candidate):
        load_reference(candidate, ours.setup, candidate.given(ours.setup.problem.path))
        twin.warm_up(rigor, ours.setup.limits.trial_s, FIRST_CONTROL)
        for _ in rounds([ours, twin], rigor, lambda: is_narrow(ours.spans, twin.spans), first=FIRST_CONTROL):
            pass
        candidate.let_go()
        twin.pin(False)
    spans = {side.name: list(side.spans) for side in (ours, twin)}
    ours.forget()
    return spans


@contextmanager
def _trusted(candidate: World) -> Iterator[None]:
    """While it runs the reference, what goes wrong is no fault of the candidate's."""
    blame, candidate.blame = candidate.blame, Verdict.ENVIRONMENT
    try:
        yield
    finally:
        candidate.blame = blame
