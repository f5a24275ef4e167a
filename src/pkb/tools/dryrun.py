"""Call a candidate once and describe what it returned, without judging it."""

from dataclasses import dataclass

from pkb.base.tensors import describe_tensor
from pkb.candidate import Candidate
from pkb.judge.correctness.orders import draw_inputs
from pkb.judge.correctness.results import fetch_tensors, run_calls
from pkb.judge.judge import Judge
from pkb.judge.profiling.trace import Profile, run_profiler, take_profile
from pkb.judge.setup.setup import Setup
from pkb.judge.state import State
from pkb.judge.worlds.world import World
from pkb.trial import Trial, TrialKind

_TRIAL = Trial(TrialKind.CHECK)


@dataclass(frozen=True)
class DryRun:
    ranks: list[list[str]]
    """By rank, one line for each returned tensor."""
    profile: Profile | None
    """The profile of torch's profiler; None with another profiler, or without."""


def dry_run(judge: Judge, setup: Setup, candidate: Candidate, profiler: str | None = None) -> DryRun:
    """Call the candidate once; then a few more times under a profiler, if one is named."""
    state = State()
    judge.build(setup, candidate, state)
    with judge.open_candidate_world(setup, state) as world:
        setup = judge.load(world, setup, candidate, state)
        draw_inputs(world, setup, judge.seeds, _TRIAL)
        ranks = []
        results = run_calls(world, setup, "the call")
        for tensors in fetch_tensors(world, setup, judge.seeds, _TRIAL, results).values():
            ranks.append([describe_tensor(f"output {k}", tensor) for k, tensor in enumerate(tensors)])
        profile = _run_profiler(world, judge, setup, profiler)
        world.end()
    return DryRun(ranks, profile)


def _run_profiler(world: World, judge: Judge, setup: Setup, profiler: str | None) -> Profile | None:
    if profiler == "torch":
        return take_profile(world, setup, judge.seeds)
    if profiler:
        run_profiler(world, setup, judge.seeds, profiler)
    return None
