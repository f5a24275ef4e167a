"""One judgement: problem and candidate in, record out. Read this file top to bottom for the whole story."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pkb.candidate import Candidate
from pkb.failure import Failure
from pkb.judge.correctness.check import check_trial
from pkb.judge.correctness.conduct import check_conduct, check_kept, left_behind
from pkb.judge.correctness.results import Outputs, order_trial
from pkb.judge.correctness.vendor_kernels import check_kernels
from pkb.judge.profiling.trace import Profile, profile_of, take_profile
from pkb.judge.screening import admit
from pkb.judge.setup.setup import BY_SEED, HIDDEN_TRIAL, PROBE_TRIAL, Setup
from pkb.judge.state import Seen
from pkb.judge.timing.aa_control import Control, controlled, is_needed
from pkb.judge.timing.measure import measure
from pkb.judge.worlds.world import World
from pkb.provenance import environment
from pkb.record import Pace, Record
from pkb.settings import JudgementSettings, Rigor, Tolerance, Track
from pkb.speedup import with_stored

if TYPE_CHECKING:
    from pkb.judge.judge import Judge

Progress = Callable[[str], None]
_EXTRA = {HIDDEN_TRIAL: " + a hidden size", PROBE_TRIAL: " + a probe"}


class Judgement:
    def __init__(
        self, judge: "Judge", setup: Setup, candidate: Candidate, asked: JudgementSettings, progress: Progress
    ):
        self.judge, self.setup, self.candidate, self.asked = judge, setup, candidate, asked
        self.progress = progress
        self.seen = Seen()

    def run(self) -> Record:
        """Whatever the candidate does is a verdict."""
        try:
            self.judge.drop_reachable()
            self._admit()
            self._bear_early()
            self._expect(self.setup)
            self._try()
            if self.asked.profile:
                self._profile()
        except Failure as failure:
            self.seen.fail(failure)
            self.judge.recover(failure)
        return self._record()

    def _admit(self) -> None:
        """By its source; then compile what has to be, while no rank holds a GPU."""
        if self.asked.screen:
            self.seen.warnings = admit(self.candidate, self.asked.track)
            self.seen.screened = True
        self.judge.make_ready(self.setup, self.candidate, self.seen, self.progress)

    def _bear_early(self) -> None:
        """What this judgement needs is born while the reference runs, if the two do not disturb each other."""
        if self.judge.may_wait(self.setup):
            known = self.setup in self.judge.references
            self.judge.bear(self.setup, (not known) + (self.asked.rigor is not None))

    def _bear_next(self) -> None:
        """What the next judgement needs, while no clock runs in this one."""
        if room := self.judge.may_wait(self.setup):
            self.judge.bear(self.setup, room)

    def _expect(self, setup: Setup) -> None:
        self.progress("reference")
        with self.seen.timed("reference"):
            self.seen.reference = self.judge.references.get(setup, self.judge.spares, self.judge.seeds)

    def _try(self) -> None:
        """Load, check every trial, time. Raises the first Failure."""
        judge, rigor = self.judge, self.asked.rigor
        if judge.platform.born_slowly:
            judge.bear(self.setup, count=1 if rigor else 0)
        with self.seen.timed("candidate"), judge.candidate_world(self.setup, self.seen) as world, ExitStack() as stack:
            control = None
            if rigor and is_needed(self.setup, judge.platform):
                # Before the candidate is here: afterwards nothing that happens here can be trusted.
                judge.pause_births()
                control = stack.enter_context(self._reference_beside(world, rigor))
            self._bear_next()
            agreed = judge.load(world, self.setup, self.candidate, self.seen)
            if agreed != self.setup:
                self._expect(agreed)
            self._order_first(world, agreed, agreed.all_trials)
            if rigor and judge.platform.born_slowly and not control:
                # While the candidate compiles what it will launch.
                control = stack.enter_context(self._reference_beside(None, rigor))
            self._check(world, agreed)
            if rigor:
                self._time(world, control or stack.enter_context(self._reference_beside(None, rigor)), agreed)
            if left := world.end():
                raise left_behind(left)

    def _reference_beside(self, world: World | None, rigor: Rigor) -> AbstractContextManager[Control]:
        judge, worlds = self.judge, 2 + len(self.asked.baselines)
        return controlled(world, self.setup, judge.seeds, self.seen.expected, judge.spares, rigor, worlds)

    def _check(self, world: World, setup: Setup) -> None:
        """Every trial, of which the first has been ordered, then what the candidate did besides."""
        first: Outputs = {}
        trials = setup.all_trials
        for number, trial in enumerate(trials, start=1):
            self.progress(f"trial {number} of {len(trials)}")
            self.seen.trial = trial
            # The next one begins while the values of this one are compared.
            after = partial(self._order_first, world, setup, trials[number:])
            expected, tolerance, count = self.seen.expected, self.asked.tolerance, self._counts(setup, trial)
            self.seen.outputs = check_trial(world, setup, expected, self.judge.seeds, trial, tolerance, count, after)
            first = first or self.seen.outputs
        check_kept(world, setup, self.judge.seeds, self.seen.expected, first)
        self.seen.library_calls = check_conduct(world, self.asked.track, setup.limits.trial_s)
        if self._from_scratch and self.judge.platform.names_kernels:
            check_kernels(world, setup, self.judge.seeds)

    def _order_first(self, world: World, setup: Setup, trials: Sequence[int]) -> None:
        """Of these trials, if there are any left."""
        for trial in trials[:1]:
            jitter = self.judge.platform.jitter()
            order_trial(world, setup, self.judge.seeds, trial, jitter, self._counts(setup, trial))

    def _counts(self, setup: Setup, trial: int) -> bool:
        """Counting costs some microseconds per operator: once is enough where nothing is barred."""
        return trial == setup.all_trials[0] or self._from_scratch

    def _time(self, world: World, control: Control, setup: Setup) -> None:
        self.progress("timing")
        self.judge.pause_births()

        def quiet_is_over() -> None:
            check_conduct(world, self.asked.track, setup.limits.trial_s)
            world.leave()
            self._bear_next()

        expected, baselines = self.seen.expected, self.asked.baselines
        timing = measure(world, control, setup, expected, self.judge.spares, baselines, quiet_is_over)
        spread = self.judge.platform.spread(timing.candidate_us, waits=timing.waits)
        self.seen.timing = with_stored(timing, self.asked.stored, spread)

    def _profile(self) -> None:
        self.progress("profiling")
        with self.seen.timed("profile"):
            self.seen.profile = self._profiled()

    def _profiled(self) -> Profile:
        """In a world of its own, once the verdict stands: what goes wrong here is only noted."""
        try:
            seen = Seen(libraries=self.seen.libraries)
            with self.judge.candidate_world(self.setup, seen) as world:
                agreed = self.judge.load(world, self.setup, self.candidate, seen)
                profile = take_profile(world, agreed, self.judge.seeds)
                world.end()
                return profile
        except Failure as failure:
            self.judge.recover(failure)
            return profile_of({}, [failure.reason])

    @property
    def _from_scratch(self) -> bool:
        return self.asked.track is Track.SCRATCH

    def _record(self) -> Record:
        seen, setup = self.seen, replace(self.setup, state=self.seen.state or self.setup.state)
        return Record(
            problem=setup.problem.stem,
            category=setup.problem.category,
            candidate=self.candidate.facts(),
            setup=_facts(setup, self.asked.tolerance) | {"track": self.asked.track, "screened": seen.screened},
            verdict=seen.verdict,
            reason=seen.reason or _praise(setup, seen.state),
            evidence=seen.evidence,
            warnings=seen.warnings,
            pace=seen.timing.pace if seen.timing else Pace.UNTIMED,
            timing=asdict(seen.timing) if seen.timing else None,
            library_calls=seen.library_calls,
            profile=seen.profile.summary if seen.profile else None,
            environment=environment(self.judge.platform) | {"sandbox": self.judge.sandbox.facts},
            seconds=seen.seconds,
        )


def _praise(setup: Setup, state: str) -> str:
    count = len(setup.all_trials) * setup.calls * setup.world
    parts = [setup.trials, "trials x", setup.calls, "calls"] + (["x", setup.world, "ranks"] if not state else [])
    extra = "".join(words for trial, words in _EXTRA.items() if trial in setup.extra)
    given = "; its weights are its constructor's" if state == BY_SEED and not setup.published else ""
    return f"all {count} results right ({' '.join(map(str, parts))}{extra}{given})"


def _facts(setup: Setup, tolerance: Tolerance | None) -> dict[str, Any]:
    rule = asdict(tolerance) if tolerance else "oracle"
    return setup.facts() | {
        "trials": setup.trials,
        "calls": setup.calls,
        "compare": rule,
        "limits": asdict(setup.limits),
    }
