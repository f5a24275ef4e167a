"""What all judgements of one judge share: the secret, the sandbox, the nursery, the pool of worlds, the references."""

import itertools
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import torch

from pkb.candidate import Candidate
from pkb.checks import list_checks
from pkb.failure import Failure
from pkb.judge.building import cache
from pkb.judge.building.build import build, describe_extensions, find_entry
from pkb.judge.correctness.check import Wrong
from pkb.judge.correctness.orders import settle_state
from pkb.judge.correctness.reference import References
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.state import State
from pkb.judge.turns import Turns
from pkb.judge.worlds.nursery import Nursery
from pkb.judge.worlds.pool import WorldPool
from pkb.judge.worlds.sandboxed import Sandbox
from pkb.judge.worlds.world import World
from pkb.platforms import find_platform
from pkb.protocol.candidate_file import CANDIDATE_FILE
from pkb.protocol.extension_files import SLOW_IMPORTS
from pkb.protocol.messages import LoadSolution, Preload
from pkb.record import Verdict
from pkb.sandbox.visible_paths import is_visible
from pkb.settings import Limits, Track

_living: "weakref.WeakSet[Resources]" = weakref.WeakSet()


class Resources:
    def __init__(self, platform: str, limits: Limits, sandbox: str, profiler: Sequence[str]):
        self.platform = find_platform(platform)
        # Now, since the nursery could not say well which file of PKB_PLUGINS cannot be loaded.
        list_checks()
        self.limits = limits
        self._sandbox_mode = sandbox
        self.sandbox = Sandbox(sandbox)
        self.turns = Turns()
        self.profiler = profiler
        """A command to start all ranks under."""
        self.seeds = Seeds()
        self.references = References()
        self._judgements = itertools.count()
        self.unbuildable: dict[str, Failure] = {}
        """Candidates, by digest, that were found not to compile, and why."""
        self._nursery: Nursery | None = None
        self._pool: WorldPool | None = None
        _living.add(self)

    @property
    def nursery(self) -> Nursery:
        """The nursery, ready for orders."""
        nursery = self.begin_nursery()
        nursery.wait_until_ready()
        return nursery

    def begin_nursery(self) -> Nursery:
        """Start the nursery without waiting for it."""
        if self._nursery is None:
            self._nursery = Nursery(self.platform, lambda _: [*self.profiler], profiled=bool(self.profiler))
        return self._nursery

    @property
    def pool(self) -> WorldPool:
        if self._pool is None or self._pool.sandbox is not self.sandbox:
            self._pool = WorldPool(self.nursery, self.sandbox, self.limits)
        return self._pool

    def close(self) -> None:
        """End the nursery and everything that comes from it. What is asked of this judge next starts a new one."""
        nursery, pool = self._nursery, self._pool
        self._nursery = self._pool = None
        # Each of these is called, whatever the others raise.
        with ExitStack() as closing:
            if pool:
                closing.callback(pool.abandon)
            if nursery:
                closing.callback(nursery.close)
            closing.callback(self.sandbox.close)

    def forget_dead_nursery(self) -> None:
        """Let go of a nursery that was killed since the last judgement: the next order starts a new one."""
        if self._nursery and self._nursery.has_ended:
            self.close()

    def interrupt(self) -> None:
        """Make what is under way in another thread fail, since it loses its nursery."""
        if self._nursery:
            self._nursery.channel.hang_up()
        self.sandbox.interrupt()

    def forget_parent(self) -> None:
        """Let go, in a forked child, of the parent's processes, without ending them; the next order starts new ones.

        Were this end of the channel left open, the nursery would outlive the parent.
        """
        if self._nursery:
            self._nursery.channel.close()
        self.sandbox.forget_parent()
        self._nursery = self._pool = None
        self.sandbox, self.turns = Sandbox(self._sandbox_mode), Turns()
        self.draw_new_seeds()

    def draw_new_seeds(self) -> None:
        """Forget the secret, so that nothing learnt from earlier judgements helps with the next ones' inputs."""
        self.seeds, self.references = Seeds(), References()

    def hide_records(self, out: Path) -> None:
        """Keep candidates from seeing a folder of records, and those around it, where they lie in one that is shown."""
        folders = [out.resolve(), *out.resolve().parents[:2]]
        seen = {str(folder) for folder in folders if folder.is_dir() and is_visible(str(folder))}
        if seen and not seen <= self.nursery.hidden:
            self.nursery.hidden |= seen
            # Worlds that wait have been confined already.
            self.pool.drop()

    def draw_hidden_size(self, setup: Setup) -> Setup:
        """Return the setup of the next judgement, whose hidden size nobody can foresee."""
        return setup.draw_hidden_size(self.seeds, next(self._judgements))

    def recover(self, failure: Failure) -> None:
        """Leave nothing to the next judgement that this failure may have spoilt. This raises no Exception."""
        is_lost = failure.evidence.check in ("nursery", "judge")
        try:
            if not is_lost and self._pool:
                self._pool.drop()
        except Exception:
            is_lost = True
        if is_lost:
            with suppress(Exception):
                self.close()

    def build(
        self,
        setup: Setup,
        candidate: Candidate,
        state: State,
        on_compile: Callable[[], None] = lambda: None,
    ) -> None:
        """Compile the candidate's extensions unless they are in the cache, while no rank holds a GPU."""
        if lacking := candidate.backend.find_missing():
            raise Failure(Verdict.ENVIRONMENT, lacking, check="backend")
        if known := self.unbuildable.pop(candidate.digest, None):
            raise known
        state.libraries = find_entry(candidate)
        if not state.libraries:
            return
        self.nursery.order(Preload(list(SLOW_IMPORTS)))
        if not cache.touch(state.libraries):
            on_compile()
            self.pool.drop()
            with state.time_phase("build"):
                build(state.libraries, candidate, self.sandbox, self.nursery, setup.limits)

    @contextmanager
    def open_candidate_world(self, setup: Setup, state: State) -> Iterator[World]:
        """Open a started world for a candidate."""
        with self.pool.take_candidate(setup.world, setup.limits) as world:
            state.logs = world.logs
            try:
                yield world
            except Wrong:
                # Its ranks are well: let them leave by themselves.
                world.end()
                raise

    def load(self, world: World, setup: Setup, candidate: Candidate, state: State, track: Track = Track.ANY) -> Setup:
        """Load a candidate, built before, on every rank; return the setup whose weights it can take."""
        file = world.folder / CANDIDATE_FILE
        file.write_bytes(candidate.source)
        seconds, extensions = setup.limits.load_s, None
        if state.libraries:
            extensions = describe_extensions(candidate, state.libraries, world.folder, world.work)
            seconds += setup.limits.build_s
        problem = world.copy_problem(setup.problem)
        order = LoadSolution(str(problem), str(file), extensions=extensions, scratch=track is Track.SCRATCH)
        world.ask(order, "load", seconds)
        agreed = settle_state(world, setup, self.seeds)
        state.weights = agreed.state
        return agreed


def _forget_parent() -> None:
    for one in [*_living]:
        one.forget_parent()
    # Threads of torch do not outlive a fork, and its next parallel loop would wait for them.
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_forget_parent)
