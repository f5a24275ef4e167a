"""The judge: problem and candidate in, record out. Read this file top to bottom for the whole story."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pkb.candidate import Candidate
from pkb.environment import environment
from pkb.errors import UsageError
from pkb.judge import artifacts, cache
from pkb.judge.admission import admit
from pkb.judge.build import build, entry_of, extensions
from pkb.judge.channel import Message
from pkb.judge.check import Outputs, Wrong, check_trial
from pkb.judge.compare import Tolerance
from pkb.judge.conduct import check_conduct, check_kept
from pkb.judge.failure import Failure
from pkb.judge.limits import Limits
from pkb.judge.nursery import Nursery
from pkb.judge.profile import Profile, profile_of, take_profile
from pkb.judge.reference import References
from pkb.judge.rigor import Rigor
from pkb.judge.sandbox import Sandbox
from pkb.judge.seeds import Seeds
from pkb.judge.seen import Seen
from pkb.judge.sides import launch_gap
from pkb.judge.timing import measure
from pkb.judge.trials import Setup
from pkb.judge.world import World
from pkb.platforms import platform_named
from pkb.problem import Problem, Size
from pkb.record import Pace, Record, Verdict
from pkb.registry import load
from pkb.screen import Track

Progress = Callable[[str], None]


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
        nproc: int = 4,
        size: str | Size = "tiny",
        dtype: str = "float32",
        trials: int = 5,
        calls: int = 3,
    ) -> Setup:
        """Fix everything that reference and candidate share. Raises UsageError when it cannot be posed."""
        found = problem if isinstance(problem, Problem) else load(problem)
        most = self.platform.most_ranks()
        if most is not None and nproc > most:
            raise UsageError(f"platform {self.platform.name} has room for {most} ranks, not {nproc}; lower --nproc")
        return Setup(found, found.size(size), dtype, nproc, trials, calls, self.limits)

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
        profile: bool = False,
        out: Path | None = None,
        progress: Progress = lambda step: None,
    ) -> Record:
        """Judge one candidate, and time it if a rigor is given. Whatever it does is a verdict, never an exception.

        Without `screen` the candidate runs whatever its source shows, and the checks that follow stand alone.
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
        with self.candidate_world(setup, candidate, seen, timed=rigor is not None) as world:
            self._check(world, setup, tolerance, progress, seen)
            if rigor:
                progress("timing")
                seen.timing = measure(world, setup, self.seeds, seen.expected, rigor, seen.launch_gap_us, baselines)
                check_conduct(world, seen.track, setup.limits.trial_s)
            if left := world.end():
                raise _left_behind(left)

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
        check_kept(world, {rank: first[0, rank] for rank in range(setup.world)}, setup.limits.trial_s)
        seen.library_calls = check_conduct(world, seen.track, setup.limits.trial_s)

    def _profile(self, setup: Setup, candidate: Candidate, seen: Seen) -> Profile:
        """In a world of its own, once the verdict stands: what goes wrong here is only noted."""
        try:
            with self.candidate_world(setup, candidate, Seen(libraries=seen.libraries)) as world:
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
    def candidate_world(self, setup: Setup, candidate: Candidate, seen: Seen, timed: bool = False) -> Iterator[World]:
        """A started world with the candidate, made ready before, loaded on every rank."""
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
            try:
                yield world
            except Wrong:
                # Its ranks are well: let them leave by themselves.
                world.end()
                raise

    def _record(self, setup: Setup, candidate: Candidate, tolerance: Tolerance | None, seen: Seen) -> Record:
        return Record(
            problem=setup.problem.stem,
            category=setup.problem.category,
            candidate=candidate.facts(),
            setup=_facts(setup, tolerance) | {"track": seen.track, "screened": seen.screened},
            verdict=seen.verdict,
            reason=seen.reason or _praise(setup),
            evidence=seen.evidence,
            warnings=seen.warnings,
            pace=seen.timing.pace if seen.timing else Pace.UNTIMED,
            timing=asdict(seen.timing) if seen.timing else None,
            library_calls=seen.library_calls,
            profile=seen.profile.summary if seen.profile else None,
            environment=environment(self.platform) | {"sandbox": self.sandbox.facts},
            seconds=seen.seconds,
        )


def _praise(setup: Setup) -> str:
    count = len(setup.all_trials) * setup.calls * setup.world
    extra = " + a hidden size + a probe" if setup.extra else ""
    return f"all {count} results right ({setup.trials} trials x {setup.calls} calls x {setup.world} ranks{extra})"


def _left_behind(commands: list[str]) -> Failure:
    return Failure(
        Verdict.CHEAT,
        f"left a process running after its last call ({commands[0]}); a kernel must finish its work inside the call",
        check="left-process",
        processes=commands,
    )


def _facts(setup: Setup, tolerance: Tolerance | None) -> dict[str, Any]:
    rule = asdict(tolerance) if tolerance else "oracle"
    shape = {"m": setup.size.m, "n": setup.size.n, "dtype": setup.dtype, "world": setup.world}
    return shape | {"trials": setup.trials, "calls": setup.calls, "compare": rule, "limits": asdict(setup.limits)}
