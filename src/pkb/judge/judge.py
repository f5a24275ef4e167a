"""The judge: problem and candidate in, record out. Read this file top to bottom for the whole story."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pkb.candidate import Candidate
from pkb.environment import environment
from pkb.errors import UsageError
from pkb.judge import artifacts, cache
from pkb.judge.admission import admit
from pkb.judge.build import build, entry_of, extensions
from pkb.judge.channel import Message
from pkb.judge.check import Wrong, check_trial
from pkb.judge.compare import Tolerance
from pkb.judge.conduct import check_conduct, check_kept, left_behind
from pkb.judge.failure import Failure
from pkb.judge.kernels import check_kernels
from pkb.judge.limits import Limits
from pkb.judge.nursery import Nursery
from pkb.judge.pace import with_stored
from pkb.judge.profile import Profile, profile_of, take_profile
from pkb.judge.reference import References
from pkb.judge.reference_times import Times, reference_times
from pkb.judge.results import Outputs
from pkb.judge.rigor import Rigor
from pkb.judge.sandbox import Sandbox
from pkb.judge.seeds import Seeds
from pkb.judge.seen import Seen
from pkb.judge.sides import launch_gap
from pkb.judge.timing import measure
from pkb.judge.trials import BY_SEED, HIDDEN_TRIAL, PROBE_TRIAL, Setup
from pkb.judge.world import World
from pkb.platforms import platform_named
from pkb.problem import Problem, Size
from pkb.record import Pace, Record, Verdict
from pkb.registry import load
from pkb.screen import Track

Progress = Callable[[str], None]
INPUTS = ("sound", "published")
_EXTRA = {HIDDEN_TRIAL: " + a hidden size", PROBE_TRIAL: " + a probe"}


class Judge:
    """Holds the secret, the expected outputs and the clocks. Use as a context manager, or call close()."""

    def __init__(
        self,
        platform: str = "auto",
        limits: Limits | None = None,
        sandbox: str = "auto",
        profiler: Sequence[str] = (),
    ):
        self.platform = platform_named(platform)
        self.limits = limits or Limits()
        self.sandbox = Sandbox(sandbox)
        self.profiler = profiler
        """A command to start all ranks under."""
        self.seeds = Seeds()
        self.references = References()
        self.unbuildable: dict[str, Failure] = {}
        """Why candidates, by digest, do not compile, where somebody has tried already."""
        self._nursery: Nursery | None = None

    @property
    def nursery(self) -> Nursery:
        if self._nursery is None:
            self._nursery = Nursery(self.platform, lambda _: [*self.profiler], profiled=bool(self.profiler))
            self._nursery.wait_until_ready()
        return self._nursery

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.sandbox.close()
        if self._nursery:
            self._nursery.close()
            self._nursery = None

    def interrupt(self) -> None:
        """From another thread: what is under way fails for want of a nursery."""
        if self._nursery:
            self._nursery.process.kill()

    def draw_new_seeds(self) -> None:
        """So that nothing learnt from earlier judgements tells of the next ones' inputs."""
        self.seeds, self.references = Seeds(), References()

    def pose(
        self,
        problem: Problem | str | int,
        *,
        nproc: int | None = None,
        size: str | Size | None = None,
        dtype: str = "float32",
        trials: int | None = None,
        calls: int = 3,
        inputs: str = "sound",
    ) -> Setup:
        """Fix everything that reference and candidate share. Raises UsageError when it cannot be posed.

        `inputs` of a model are `sound`, or `published`: drawn as its file says, at the one size, with its own weights.
        """
        found = problem if isinstance(problem, Problem) else load(problem)
        world, most = nproc or found.usual_world, self.platform.most_ranks()
        if most is not None and world > most:
            raise UsageError(f"platform {self.platform.name} has room for {most} ranks, not {world}; lower --nproc")
        if inputs not in INPUTS:
            raise UsageError(f"unknown inputs {inputs!r}; choose from {', '.join(INPUTS)}")
        rounds = trials or found.usual_trials
        setup = Setup(found, found.size(size), dtype, world, rounds, calls, self.limits)
        return setup.of_a_model(inputs == "published") if found.builds else setup

    def judge(
        self,
        setup: Setup,
        candidate: Candidate,
        *,
        tolerance: Tolerance | None = None,
        track: str = Track.ANY,
        screen: bool = True,
        rigor: Rigor | None = None,
        baselines: Sequence[str] = (),
        stored: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        profile: bool = False,
        out: Path | None = None,
        progress: Progress = lambda step: None,
    ) -> Record:
        """Judge one candidate, and time it if a rigor is given. Whatever it does is a verdict, never an exception.

        Without `screen` the candidate runs whatever its source shows, and the checks that follow stand alone.
        `stored` are times of further baselines, as `pkb.stored.reusable` has them.
        """
        seen = Seen(track=Track.named(track))
        try:
            if screen:
                seen.warnings = admit(candidate, seen.track)
                seen.screened = True
            self.make_ready(setup, candidate, seen, progress)
            with seen.timed("reference"):
                progress("reference")
                seen.reference = self.references.get(setup, self.nursery, self.seeds)
            with seen.timed("candidate"):
                self._try(setup, candidate, tolerance, progress, seen, rigor, baselines)
            if seen.timing:
                seen.timing = with_stored(seen.timing, stored)
            if profile:
                progress("profiling")
                with seen.timed("profile"):
                    seen.profile = self._profile(setup, candidate, seen)
        except Failure as failure:
            seen.fail(failure)
            self._give_up_if_lost(failure)
        record = self._record(setup, candidate, tolerance, seen)
        if out:
            artifacts.save(out, record, candidate, seen)
        return record

    def times(self, setup: Setup, modes: Sequence[str], rigor: Rigor) -> Iterator[tuple[str, Times]]:
        """Time the reference by itself, eager or compiled: each mode as soon as it is done. Raises Failure."""
        try:
            yield from reference_times(setup, self.nursery, self.seeds, rigor, modes)
        except Failure as failure:
            self._give_up_if_lost(failure)
            raise

    def make_ready(
        self, setup: Setup, candidate: Candidate, seen: Seen, progress: Progress = lambda step: None
    ) -> None:
        """Compile the candidate's extensions unless they are in the cache, while no rank holds a GPU."""
        if lacking := candidate.backend.missing():
            raise Failure(Verdict.ENVIRONMENT, lacking, check="backend")
        if known := self.unbuildable.pop(candidate.digest, None):
            raise known
        seen.libraries = entry_of(candidate)
        if seen.libraries and not cache.touch(seen.libraries):
            progress("build")
            with seen.timed("build"):
                build(seen.libraries, candidate, self.sandbox, self.nursery, setup.limits)

    def _try(
        self,
        setup: Setup,
        candidate: Candidate,
        tolerance: Tolerance | None,
        progress: Progress,
        seen: Seen,
        rigor: Rigor | None,
        baselines: Sequence[str],
    ) -> None:
        """Load, check every trial, time. Raises the first Failure."""
        with self.candidate_world(setup, candidate, seen, timed=rigor is not None) as (world, setup):
            seen.reference = self.references.get(setup, self.nursery, self.seeds)
            self._check(world, setup, tolerance, progress, seen)
            if rigor:
                progress("timing")
                seen.timing = measure(world, setup, self.seeds, seen.expected, rigor, seen.launch_gap_us, baselines)
                check_conduct(world, seen.track, setup.limits.trial_s)
            if left := world.end():
                raise left_behind(left)

    def _check(self, world: World, setup: Setup, tolerance: Tolerance | None, progress: Progress, seen: Seen) -> None:
        """Every trial, then what the candidate did besides."""
        first: Outputs = {}
        for number, trial in enumerate(setup.all_trials):
            progress(f"trial {number + 1} of {len(setup.all_trials)}")
            seen.trial = trial
            # Counting costs some microseconds per operator: once is enough where nothing is barred.
            count = number == 0 or seen.track is Track.SCRATCH
            jitter = self.platform.jitter()
            seen.outputs = check_trial(world, setup, seen.expected, self.seeds, trial, tolerance, jitter, count)
            first = first or seen.outputs
        check_kept(world, setup, self.seeds, seen.expected, first)
        seen.library_calls = check_conduct(world, seen.track, setup.limits.trial_s)
        if seen.track is Track.SCRATCH and self.platform.names_kernels:
            check_kernels(world, setup, self.seeds)

    def _profile(self, setup: Setup, candidate: Candidate, seen: Seen) -> Profile:
        """In a world of its own, once the verdict stands: what goes wrong here is only noted."""
        try:
            with self.candidate_world(setup, candidate, Seen(libraries=seen.libraries)) as (world, setup):
                profile = take_profile(world, setup, self.seeds)
                world.end()
                return profile
        except Failure as failure:
            self._give_up_if_lost(failure)
            return profile_of({}, [failure.reason])

    def _give_up_if_lost(self, failure: Failure) -> None:
        """The next judgement starts a new nursery."""
        if failure.evidence.get("check") == "nursery":
            self.close()

    @contextmanager
    def candidate_world(
        self, setup: Setup, candidate: Candidate, seen: Seen, timed: bool = False
    ) -> Iterator[tuple[World, Setup]]:
        """A started world with the candidate, made ready before, loaded on every rank; and the setup that it allows."""
        with self.sandbox.world(self.nursery, setup.world, setup.limits) as world:
            seen.logs = world.logs
            if timed:
                seen.launch_gap_us = launch_gap(world)
            # Nothing outside its folder can be counted on to be visible there.
            problem, file = world.folder / setup.problem.path.name, world.folder / "candidate.py"
            problem.write_bytes(setup.problem.path.read_bytes())
            file.write_bytes(candidate.source)
            order: Message = {"do": "load", "problem": str(problem), "candidate": str(file)}
            seconds = setup.limits.load_s
            if seen.libraries:
                order["extensions"] = extensions(candidate, seen.libraries, world.folder)
                seconds += setup.limits.build_s
            world.ask(order, "load", seconds)
            agreed = setup.agreed(world, self.seeds)
            seen.state = agreed.state
            try:
                yield world, agreed
            except Wrong:
                # Its ranks are well: let them leave by themselves.
                world.end()
                raise

    def _record(self, setup: Setup, candidate: Candidate, tolerance: Tolerance | None, seen: Seen) -> Record:
        return Record(
            problem=setup.problem.stem,
            category=setup.problem.category,
            candidate=candidate.facts(),
            setup=_facts(replace(setup, state=seen.state or setup.state), tolerance)
            | {"track": seen.track, "screened": seen.screened},
            verdict=seen.verdict,
            reason=seen.reason or _praise(setup, seen.state),
            evidence=seen.evidence,
            warnings=seen.warnings,
            pace=seen.timing.pace if seen.timing else Pace.UNTIMED,
            timing=asdict(seen.timing) if seen.timing else None,
            library_calls=seen.library_calls,
            profile=seen.profile.summary if seen.profile else None,
            environment=environment(self.platform) | {"sandbox": self.sandbox.facts},
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
