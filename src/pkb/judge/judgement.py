"""One judgement: problem and candidate in, record out. Read this file top to bottom for the whole story."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pkb.candidate import Candidate
from pkb.environment import environment
from pkb.judge.admission import admit
from pkb.judge.check import check_trial
from pkb.judge.compare import Tolerance
from pkb.judge.conduct import check_conduct, check_kept, left_behind
from pkb.judge.failure import Failure
from pkb.judge.kernels import check_kernels
from pkb.judge.pace import with_stored
from pkb.judge.profile import Profile, profile_of, take_profile
from pkb.judge.results import Outputs
from pkb.judge.rigor import Rigor
from pkb.judge.seen import Seen
from pkb.judge.timing import measure
from pkb.judge.trials import BY_SEED, HIDDEN_TRIAL, PROBE_TRIAL, Setup
from pkb.judge.world import World
from pkb.record import Pace, Record
from pkb.screen import Track

if TYPE_CHECKING:
    from pkb.judge.judge import Judge

Progress = Callable[[str], None]
_EXTRA = {HIDDEN_TRIAL: " + a hidden size", PROBE_TRIAL: " + a probe"}


@dataclass(frozen=True)
class Asked:
    """What is wanted of a judgement, as the arguments of Judge.judge."""

    tolerance: Tolerance | None
    track: Track
    screen: bool
    rigor: Rigor | None
    baselines: Sequence[str]
    stored: Mapping[str, Mapping[str, Any]]
    profile: bool


class Judgement:
    def __init__(self, judge: "Judge", setup: Setup, candidate: Candidate, asked: Asked, progress: Progress):
        self.judge, self.setup, self.candidate, self.asked = judge, setup, candidate, asked
        self.progress = progress
        self.seen = Seen()

    def run(self) -> Record:
        """Whatever the candidate does is a verdict."""
        try:
            self.judge.drop_reachable()
            self._admit()
            # While the reference runs.
            self.judge.bear_candidate(self.setup)
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

    def _expect(self, setup: Setup) -> None:
        self.progress("reference")
        with self.seen.timed("reference"):
            self.seen.reference = self.judge.references.get(setup, self.judge.spares, self.judge.seeds)

    def _try(self) -> None:
        """Load, check every trial, time. Raises the first Failure."""
        timed = self.asked.rigor is not None
        with (
            self.seen.timed("candidate"),
            self.judge.candidate_world(self.setup, self.candidate, self.seen, timed) as (world, agreed),
        ):
            self.judge.bear_ahead(agreed, timed)
            if agreed != self.setup:
                self._expect(agreed)
            self._check(world, agreed)
            self._time(world, agreed)
            if left := world.end():
                raise left_behind(left)

    def _check(self, world: World, setup: Setup) -> None:
        """Every trial, then what the candidate did besides."""
        first: Outputs = {}
        for number, trial in enumerate(setup.all_trials):
            self.progress(f"trial {number + 1} of {len(setup.all_trials)}")
            # Counting costs some microseconds per operator: once is enough where nothing is barred.
            self.seen.outputs = self._check_trial(world, setup, trial, count=number == 0 or self._from_scratch)
            first = first or self.seen.outputs
        check_kept(world, setup, self.judge.seeds, self.seen.expected, first)
        self.seen.library_calls = check_conduct(world, self.asked.track, setup.limits.trial_s)
        if self._from_scratch and self.judge.platform.names_kernels:
            check_kernels(world, setup, self.judge.seeds)

    def _check_trial(self, world: World, setup: Setup, trial: int, count: bool) -> Outputs:
        self.seen.trial = trial
        seeds, jitter = self.judge.seeds, self.judge.platform.jitter()
        return check_trial(world, setup, self.seen.expected, seeds, trial, self.asked.tolerance, jitter, count)

    def _time(self, world: World, setup: Setup) -> None:
        if self.asked.rigor is None:
            return
        self.progress("timing")
        self.judge.settle()

        def quiet_is_over() -> None:
            check_conduct(world, self.asked.track, setup.limits.trial_s)
            world.leave()
            # Worlds for the next judgement, which are to be there when it comes to its clocks.
            self.judge.bear_ahead(setup, timed=True)

        judge, rigor, baselines = self.judge, self.asked.rigor, self.asked.baselines
        expected = self.seen.expected
        timing = measure(world, setup, judge.seeds, expected, judge.spares, rigor, baselines, quiet_is_over)
        self.seen.timing = with_stored(timing, self.asked.stored)

    def _profile(self) -> None:
        self.progress("profiling")
        with self.seen.timed("profile"):
            self.seen.profile = self._profiled()

    def _profiled(self) -> Profile:
        """In a world of its own, once the verdict stands: what goes wrong here is only noted."""
        try:
            seen = Seen(libraries=self.seen.libraries)
            with self.judge.candidate_world(self.setup, self.candidate, seen) as (world, agreed):
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
