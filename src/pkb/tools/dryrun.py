"""Call a candidate once and describe what it returned, without judging it."""

from dataclasses import dataclass, field

from pkb.base.tensors import describe_tensor
from pkb.candidate import Candidate
from pkb.failure import Failure
from pkb.judge.correctness.orders import draw_inputs
from pkb.judge.correctness.results import fetch_tensors, run_calls
from pkb.judge.judge import Judge
from pkb.judge.profiling.trace import Profile, run_profiler, take_profile
from pkb.judge.setup.setup import Setup
from pkb.judge.state import State
from pkb.judge.worlds.world import World
from pkb.trial import Trial, TrialKind

_TRIAL = Trial(TrialKind.CHECK)


@dataclass
class DryRun:
    ranks: list[list[str]] = field(default_factory=list)
    """By rank, one line for each returned tensor."""
    printed: list[str] = field(default_factory=list)
    """By rank, what the candidate printed."""
    profile: Profile | None = None
    """The profile of torch's profiler; None with another profiler, or without."""
    failure: Failure | None = None
    """Why the candidate did not get to its end."""


def dry_run(judge: Judge, setup: Setup, candidate: Candidate, profiler: str | None = None) -> DryRun:
    """Call the candidate once; then a few more times under a profiler, if one is named."""
    seen, state = DryRun(), State()
    try:
        judge.build(setup, candidate, state)
        with judge.open_candidate_world(setup, state) as world:
            _call_once(judge, world, judge.load(world, setup, candidate, state), profiler, seen)
            world.end()
    except Failure as failure:
        seen.failure = failure
    if state.logs:
        seen.printed = [state.logs.split_fatal(rank)[0] for rank in range(setup.world)]
    return seen


def _call_once(judge: Judge, world: World, setup: Setup, profiler: str | None, seen: DryRun) -> None:
    draw_inputs(world, setup, judge.seeds, _TRIAL)
    results = run_calls(world, setup, "the call")
    for tensors in fetch_tensors(world, setup, judge.seeds, _TRIAL, results).values():
        seen.ranks.append([describe_tensor(f"output {k}", tensor) for k, tensor in enumerate(tensors)])
    seen.profile = _run_profiler(world, judge, setup, profiler)


def _run_profiler(world: World, judge: Judge, setup: Setup, profiler: str | None) -> Profile | None:
    if profiler == "torch":
        return take_profile(world, setup, judge.seeds)
    if profiler:
        run_profiler(world, setup, judge.seeds, profiler)
    return None
