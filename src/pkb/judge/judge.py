"""The judge: what all judgements share, the secret, the sandbox, the nursery of ranks and the references."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pkb.candidate import Candidate
from pkb.errors import UsageError
from pkb.failure import Failure
from pkb.judge import artifacts
from pkb.judge.building import cache
from pkb.judge.building.build import build, entry_of, extensions
from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.reference import References
from pkb.judge.judgement import Judgement, Progress
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.state import Seen
from pkb.judge.timing.reference_times import Times, reference_times
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.pool import Spares
from pkb.judge.worlds.sandboxed import Sandbox
from pkb.judge.worlds.world import World
from pkb.platforms import platform_named
from pkb.problems.problem import Problem
from pkb.problems.suite import load_problem
from pkb.protocol.channel import Message
from pkb.provenance import environment
from pkb.rank.extensions import NEEDED
from pkb.record import Record, Verdict
from pkb.settings import JudgementSettings, Limits, ProblemSettings, Rigor


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
        self._spares: Spares | None = None

    @property
    def spares(self) -> Spares:
        """Born in the nursery, for references."""
        self._spares = self._spares or Spares(self.nursery, self.limits)
        return self._spares

    @property
    def nursery(self) -> Nursery:
        nursery = self._begun()
        nursery.wait_until_ready()
        return nursery

    def _begun(self) -> Nursery:
        if self._nursery is None:
            self._nursery = Nursery(self.platform, lambda _: [*self.profiler], profiled=bool(self.profiler))
        return self._nursery

    def __enter__(self) -> "Judge":
        # What the record says of this machine; looked up before it is wanted in a hurry.
        environment(self.platform)
        # It imports while the first judgement is posed.
        self._begun()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.sandbox.close()
        if self._nursery:
            self._nursery.close()
            self._nursery = self._spares = None

    def interrupt(self) -> None:
        """From another thread: what is under way fails for want of a nursery."""
        if self._nursery:
            self._nursery.channel.hang_up()

    def draw_new_seeds(self) -> None:
        """So that nothing learnt from earlier judgements tells of the next ones' inputs."""
        self.seeds, self.references = Seeds(), References()

    def pose(self, problem: Problem | str | int, settings: ProblemSettings | None = None) -> Setup:
        """Fix everything that reference and candidate share. Raises UsageError when it cannot be posed."""
        found, asked = problem if isinstance(problem, Problem) else load_problem(problem), settings or ProblemSettings()
        world, most = asked.nproc or found.usual_world, self.platform.most_ranks()
        if most is not None and world > most:
            raise UsageError(f"platform {self.platform.name} has room for {most} ranks, not {world}; lower --nproc")
        rounds = asked.trials or found.usual_trials
        setup = Setup(found, found.size(asked.size), asked.dtype, world, rounds, asked.calls, self.limits)
        return setup.of_a_model(asked.inputs == "published") if found.builds else setup

    def judge(
        self,
        setup: Setup,
        candidate: Candidate,
        settings: JudgementSettings | None = None,
        *,
        out: Path | None = None,
        progress: Progress = lambda step: None,
    ) -> Record:
        """Judge one candidate, and time it if the settings have a rigor. Whatever it does is a verdict."""
        judgement = Judgement(self, setup, candidate, settings or JudgementSettings(), progress)
        record = judgement.run()
        if out:
            artifacts.save(out, record, candidate, judgement.seen)
        return record

    def times(self, setup: Setup, modes: Sequence[str], rigor: Rigor) -> Iterator[tuple[str, Times]]:
        """Time the reference by itself, eager or compiled: each mode as soon as it is done. Raises Failure."""
        try:
            yield from reference_times(setup, self.spares, self.seeds, rigor, modes)
        except Failure as failure:
            self.recover(failure)
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
        if not seen.libraries:
            return
        self.nursery.order({"do": "preload", "modules": NEEDED})
        if not cache.touch(seen.libraries):
            progress("build")
            self._drop_waiting()
            with seen.timed("build"):
                build(seen.libraries, candidate, self.sandbox, self.nursery, setup.limits)

    def bear(self, setup: Setup, count: int) -> None:
        """Begin with a world for a candidate, and so many for references, or go on with them."""
        self.spares.bear(setup.world, count)
        self.sandbox.bear(self.nursery, setup.world, setup.limits)

    def may_wait(self, setup: Setup) -> int:
        """How many worlds may, for references of this judgement and the next."""
        return self.platform.spare_worlds(setup.world)

    def pause_births(self) -> None:
        """Until more are asked for: clocks are about to run."""
        self.spares.pause()
        self.sandbox.pause()

    def drop_reachable(self) -> None:
        """What waits from the last judgement, if its candidate could have reached it."""
        if self.sandbox.facts.get("processes") != "closed":
            self._drop_waiting()

    def recover(self, failure: Failure) -> None:
        """Leave nothing to the next judgement that this failure may have spoilt."""
        lost = failure.evidence.get("check") == "nursery"
        try:
            if not lost:
                self._drop_waiting()
        except Failure:
            lost = True
        if lost:
            self.close()

    def _drop_waiting(self) -> None:
        self.sandbox.drop()
        if self._spares:
            self._spares.drop()

    @contextmanager
    def candidate_world(self, setup: Setup, seen: Seen) -> Iterator[World]:
        """A started world for a candidate."""
        with self.sandbox.world(self.nursery, setup.world, setup.limits) as world:
            seen.logs = world.logs
            try:
                yield world
            except Wrong:
                # Its ranks are well: let them leave by themselves.
                world.end()
                raise

    def load(self, world: World, setup: Setup, candidate: Candidate, seen: Seen) -> Setup:
        """Load a candidate, made ready before, on every rank; the setup that it allows."""
        file = world.folder / "candidate.py"
        file.write_bytes(candidate.source)
        order: Message = {"do": "load", "problem": str(world.given(setup.problem.path)), "candidate": str(file)}
        seconds = setup.limits.load_s
        if seen.libraries:
            order["extensions"] = extensions(candidate, seen.libraries, world.folder)
            seconds += setup.limits.build_s
        world.ask(order, "load", seconds)
        agreed = setup.agreed(world, self.seeds)
        seen.state = agreed.state
        return agreed
