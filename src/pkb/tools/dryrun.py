"""One call of a candidate, looked at but not judged."""

from dataclasses import dataclass

from pkb.base.tensors import describe_tensor
from pkb.candidate import Candidate
from pkb.judge.correctness.results import handed_over, run_trial
from pkb.judge.judge import Judge
from pkb.judge.profiling.trace import Profile, run_profiled, take_profile
from pkb.judge.setup.setup import Setup
from pkb.judge.state import Seen
from pkb.judge.worlds.world import World


@dataclass(frozen=True)
class DryRun:
    ranks: list[list[str]]
    """Lines for each rank: one per output tensor."""
    profile: Profile | None
    """By torch's profiler, when asked for."""


def dry_run(judge: Judge, setup: Setup, candidate: Candidate, profiler: str | None = None) -> DryRun:
    """Call the candidate once; then a few times more under a profiler, if one is named."""
    seen = Seen()
    judge.make_ready(setup, candidate, seen)
    with judge.candidate_world(setup, seen) as world:
        setup = judge.load(world, setup, candidate, seen)
        setup.prepare(world, judge.seeds, trial=0)
        ranks = []
        results = run_trial(world, setup, "the call")
        for tensors in handed_over(world, setup, judge.seeds, 0, results).values():
            ranks.append([describe_tensor(f"output {k}", tensor) for k, tensor in enumerate(tensors)])
        profile = _profiled(world, judge, setup, profiler)
        world.end()
    return DryRun(ranks, profile)


def _profiled(world: World, judge: Judge, setup: Setup, profiler: str | None) -> Profile | None:
    if profiler == "torch":
        return take_profile(world, setup, judge.seeds)
    if profiler:
        run_profiled(world, setup, judge.seeds, profiler)
    return None
