"""What each rank draws in each trial: seeds, delays, changed elements, and the pieces of results that are compared."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import BY_NAME, Setup
from pkb.problems.case import Case
from pkb.protocol.messages import CallOrder, CaseOrder, Recipe
from pkb.protocol.sent_inputs import VaryingForm, draw_tensors
from pkb.protocol.spot_check import Excerpt
from pkb.trial import Trial, TrialKind

_CLEARLY, _A_LITTLE = (0.5, 1.0), (0.05, 0.1)
"""Ranges of the delay of a rank, as shares of the platform's longest."""
_TIMED_KINDS = (TrialKind.TIMED, TrialKind.CONTROL, TrialKind.CLOCK)


def describe_case(setup: Setup, trial: Trial) -> CaseOrder:
    return CaseOrder(
        setup.find_size(trial),
        setup.dtype,
        setup.find_variant(trial),
        setup.is_whole(trial),
        setup.published,
        setup.is_sent(trial),
    )


def describe_calls(
    setup: Setup,
    seeds: Seeds,
    trial: Trial,
    rank: int,
    count: int,
    first: int = 0,
    longest_delay: float = 0.0,
    decoy: bool = False,
) -> list[CallOrder]:
    """Return what a rank must know to draw the inputs of `count` calls; a decoy has only their form."""
    return [_describe_call(setup, seeds, trial, first + k, rank, longest_delay, decoy) for k in range(count)]


def _describe_call(
    setup: Setup, seeds: Seeds, trial: Trial, call: int, rank: int, longest_delay: float, decoy: bool = False
) -> CallOrder:
    place = (setup.problem.stem, trial.kind, trial.index, call)
    same = (setup.problem.stem, trial.kind, trial.index, 0)
    drawn = same if trial.kind is TrialKind.PROBE else (*place, "decoy") if decoy else place
    delays = _choose_delays(setup, seeds, trial, call) if longest_delay else {}
    return CallOrder(
        seed=seeds.of(*drawn, rank),
        shared_seed=seeds.of(*drawn, "shared"),
        delay=longest_delay * delays.get(rank, 0.0),
        bump=_choose_bump(setup, seeds, trial, call, rank),
    )


def _choose_delays(setup: Setup, seeds: Seeds, trial: Trial, call: int) -> dict[int, float]:
    """Return the ranks that are late in a call, and by which share of the platform's longest delay.

    Delays are most of what a trial costs. In the ordinary trials together every rank is clearly late once, in a call
    that cannot be foreseen; in all other calls one rank is late by a little. At the hidden size, one rank is late once.
    """
    if setup.world == 1 or trial.kind is TrialKind.PROBE:
        # A rank alone is never late; and with the same inputs in all calls, data read too early hardly differs.
        return {}
    stem = setup.problem.stem
    draw = seeds.random(stem, trial.kind, trial.index, call, "late")
    if trial.kind is TrialKind.HIDDEN:
        chosen = seeds.random(stem, trial.kind, "late").randrange(setup.calls)
        return {draw.randrange(setup.world): draw.uniform(*_A_LITTLE)} if call == chosen else {}
    turns = setup.trials * setup.calls
    order = seeds.random(stem, "order of delays").sample(range(turns), turns)
    turn = order[trial.index * setup.calls + call]
    return {turn % setup.world: draw.uniform(*(_CLEARLY if turn < setup.world else _A_LITTLE))}


def _choose_bump(setup: Setup, seeds: Seeds, trial: Trial, call: int, rank: int) -> tuple[float, float] | None:
    """Return where this rank changes one element of its inputs, as shares of tensors and elements."""
    if trial.kind is not TrialKind.PROBE or call == 0:
        return None
    place = seeds.random(setup.problem.stem, "bump", call)
    shares = place.random(), place.random()
    return shares if place.randrange(setup.world) == rank else None


def choose_excerpts(
    setup: Setup, seeds: Seeds, trial: Trial, call: int, rank: int, shapes: Sequence[Sequence[int]]
) -> list[Excerpt | None]:
    """Return which part of each tensor of a result is compared; None for all of it."""
    place = (setup.problem.stem, trial.kind, trial.index, call, rank, "excerpt")
    choose = Excerpt.part if trial.kind is TrialKind.CLOCK else Excerpt.of
    return [choose(shape, seeds.random(*place, k)) for k, shape in enumerate(shapes)]


def describe_recipe(setup: Setup, seeds: Seeds, trial: Trial) -> Recipe | None:
    """Return how a model is built for a trial: with other weights in each, but the same in all that is timed."""
    place = (TrialKind.TIMED, 0) if trial.kind in _TIMED_KINDS else (trial.kind, trial.index)
    own = seeds.of(setup.problem.stem, *place, "state")
    always = choose_construction_seed(setup, seeds)
    return setup.problem.make_recipe(setup.find_size(trial), (always, own), setup.state == BY_NAME, setup.without)


def choose_construction_seed(setup: Setup, seeds: Seeds) -> int:
    return seeds.of(setup.problem.stem, "construction")


def draw_sent_inputs(setup: Setup, seeds: Seeds, trial: Trial) -> list[list[list[Tensor]]]:
    """Draw the inputs of a trial in the judge, by rank and call; nothing where ranks must draw for themselves."""
    if not setup.is_sent(trial):
        return []
    try:
        return [
            [draw_tensors(setup.problem, *_pose_cases(setup, seeds, trial, call, rank)) for call in range(setup.calls)]
            for rank in range(setup.world)
        ]
    except VaryingForm:
        return []


def _pose_cases(setup: Setup, seeds: Seeds, trial: Trial, call: int, rank: int) -> list[Case]:
    """Return a call's case, and the one that a rank draws in its place."""
    orders = [_describe_call(setup, seeds, trial, call, rank, 0.0, decoy) for decoy in (False, True)]
    case = setup.case(rank, trial)
    return [replace(case, seed=order.seed, shared_seed=order.shared_seed) for order in orders]
