"""One call of a candidate, looked at but not judged."""

from dataclasses import dataclass

from pkb.candidate import Candidate
from pkb.judge.judge import Judge
from pkb.judge.profile import Profile, run_profiled, take_profile
from pkb.judge.seen import Seen
from pkb.judge.trials import Setup, run_trial, tensors_of
from pkb.judge.world import World
from pkb.samples import sample_line


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
    with judge.candidate_world(setup, candidate, seen) as (world, setup):
        setup.prepare(world, judge.seeds, trial=0)
        ranks = []
        for result in run_trial(world, setup, "the call"):
            tensors = tensors_of(result, world, setup.limits.trial_s)
            ranks.append([sample_line(f"output {k}", tensor) for k, tensor in enumerate(tensors)])
        profile = _profiled(world, judge, setup, profiler)
        world.end()
    return DryRun(ranks, profile)


def _profiled(world: World, judge: Judge, setup: Setup, profiler: str | None) -> Profile | None:
    if profiler == "torch":
        return take_profile(world, setup, judge.seeds)
    if profiler:
        run_profiled(world, setup, judge.seeds, profiler)
    return None
