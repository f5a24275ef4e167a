"""The A/A control: two worlds run the same code before one of them loads a candidate.

Processes are unequal from their start: on an H200 one is faster than another by some percent, whatever they run. The
ratio of the reference's times in the two worlds is no difference of code, and is divided out of the candidate's.
"""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.orders import load_reference, start_reference
from pkb.judge.correctness.reference import Reference
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.timing.blocks import BlockPlan, TimedWorld, run_rounds
from pkb.judge.worlds.pool import WorldPool
from pkb.judge.worlds.world import World
from pkb.platforms import Platform
from pkb.record import ControlTimes, Spans, Verdict
from pkb.settings import Rigor
from pkb.speedup import bootstrap_median, compute_call_time, compute_ratios, is_narrow
from pkb.trial import Trial, TrialKind

_LONG_US, _LONG_ALONE_US = 1000.0, 500.0
"""Microseconds from which a call takes as long in any process; for a single rank, at the speed of light."""
_CONTROL = Trial(TrialKind.CONTROL)


@dataclass(frozen=True)
class Control:
    rigor: Rigor
    ours: TimedWorld
    """The reference, warm, in the world that will take turns with the candidate."""
    spans: dict[str, Spans]
    """The reference's blocks in both worlds, by the name that each will have; empty where a control tells nothing."""

    @property
    def ratios(self) -> list[float]:
        return compute_ratios(*self.spans.values()) if self.spans else [1.0]

    def describe(self) -> ControlTimes | None:
        """Return the control for the record; None where there was none."""
        if not self.spans:
            return None
        times = {f"{name}_us": compute_call_time(spans) for name, spans in self.spans.items()}
        ratio, interval = statistics.median(self.ratios), bootstrap_median(self.ratios)
        return ControlTimes(**times, ratio=ratio, interval=interval, blocks_us=self.spans)


def needs_control(setup: Setup, platform: Platform) -> bool:
    """Whether processes differ by more than calls of this length."""
    if not platform.has_unequal_processes or setup.world > 1:
        return platform.has_unequal_processes
    light = setup.find_light_us(platform)
    return light is None or light < _LONG_ALONE_US


@contextmanager
def open_reference(
    candidate: World | None,
    setup: Setup,
    seeds: Seeds,
    expected: Reference,
    pool: WorldPool,
    rigor: Rigor,
    worlds: int,
    scratch: bool,
) -> Iterator[Control]:
    """Open a world for the reference, which stays until the candidate has been judged.

    For a control, the reference also runs in the candidate's world, if there is one: nothing is loaded there yet.
    `worlds` is the number of worlds that will be timed, and `scratch` whether the candidate's track is.
    """
    with start_reference(pool.take_reference(setup.world), setup, scratch=scratch) as reference:
        plan = BlockPlan.of(reference, setup, seeds, rigor, worlds, expected.find_largest_call())
        ours = TimedWorld("reference", reference, plan, setup, seeds)
        ours.warm_up(rigor, setup.limits.trial_s, _CONTROL)
        try:
            yield Control(rigor, ours, _time_identical_code(ours, candidate, rigor, scratch) if candidate else {})
        except Wrong:
            # The reference's ranks are well.
            reference.dismiss()
            raise


def _time_identical_code(ours: TimedWorld, candidate: World, rigor: Rigor, scratch: bool) -> dict[str, Spans]:
    # Where calls wait for the device, the ratio would measure host jitter, not the processes.
    if ours.warm_us > _LONG_US or not ours.keeps_ahead:
        return {}
    twin = TimedWorld("candidate", candidate, ours.plan, ours.setup, ours.seeds)
    with _trust(candidate):
        load_reference(candidate, ours.setup, candidate.copy_problem(ours.setup.problem), scratch=scratch)
        twin.warm_up(rigor, ours.setup.limits.trial_s, _CONTROL)
        ours.use_shorter_plan(twin.plan)
        is_enough = partial(is_narrow, ours.spans, twin.spans)
        for _ in run_rounds([ours, twin], rigor, is_enough, kind=TrialKind.CONTROL):
            pass
        candidate.release_memory()
        twin.pin(False)
    spans = {side.name: list(side.spans) for side in (ours, twin)}
    ours.forget()
    return spans


@contextmanager
def _trust(candidate: World) -> Iterator[None]:
    """Blame the environment for what goes wrong while the candidate's world runs the reference."""
    blame, candidate.blame = candidate.blame, Verdict.ENVIRONMENT
    try:
        yield
    finally:
        candidate.blame = blame
