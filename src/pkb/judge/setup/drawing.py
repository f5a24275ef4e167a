"""What each rank draws in each trial: seeds, delays, changed elements, and the pieces of results that are compared."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.sending import draw_call, is_sent, weigh_call
from pkb.judge.setup.setup import BY_NAME, Setup
from pkb.protocol.messages import CallOrder, CaseOrder, Recipe
from pkb.protocol.sent_inputs import DrawnArguments
from pkb.protocol.spot_check import Excerpt
from pkb.trial import Trial, TrialKind

Place = tuple[Trial, int]
"""A trial, and the number of one of its calls."""
_LITTLE_BYTES, _MOST_THREADS = 256 << 10, 8
"""Calls with fewer bytes of inputs are drawn by one thread: threads would take longer to start."""
_CLEARLY, _A_LITTLE = (0.5, 1.0), (0.05, 0.1)
"""Ranges of the delay of a rank, as shares of the platform's usual longest."""
_LONGEST = (1.5, 6.0)
"""The range of one delay of all, in a call that cannot be foreseen: no fixed wait in a kernel is known to be enough."""
_TIMED_KINDS = (TrialKind.TIMED, TrialKind.CONTROL, TrialKind.CLOCK)
_EXCERPTS = {TrialKind.TIMED: Excerpt.short, TrialKind.CLOCK: Excerpt.part}
"""How excerpts are chosen where they are not those of a trial: of every timed block one result is fetched, and of a run
under the judge's clock a part that has a digest of its own."""


def describe_case(setup: Setup, trial: Trial) -> CaseOrder:
    return CaseOrder(
        setup.find_size(trial),
        setup.dtype,
        setup.find_variant(trial),
        setup.is_whole(trial),
        setup.has_outliers(trial),
        setup.published,
    )


def describe_calls(
    setup: Setup,
    seeds: Seeds,
    trial: Trial,
    rank: int,
    count: int,
    first: int = 0,
    longest_delay: float = 0.0,
) -> list[CallOrder]:
    """Return what a rank must know to draw the inputs of `count` calls of a trial."""
    return [describe_call(setup, seeds, trial, first + k, rank, longest_delay) for k in range(count)]


def describe_call(
    setup: Setup, seeds: Seeds, trial: Trial, call: int, rank: int, longest_delay: float = 0.0
) -> CallOrder:
    """Return what a rank must know to draw the inputs of one call; where they are sent, seeds of no use."""
    late = longest_delay and longest_delay * _choose_delays(setup, seeds, trial, call).get(rank, 0.0)
    if is_sent(setup, seeds, trial, call):
        decoy = (setup.problem.stem, trial.kind, trial.index, call, "decoy")
        return CallOrder(seeds.of(*decoy, rank), seeds.of(*decoy, "shared"), late)
    bump = _choose_bump(setup, seeds, trial, call, rank)
    return CallOrder(*_find_seeds(setup, seeds, trial, call, rank), late, bump)


def _find_seeds(setup: Setup, seeds: Seeds, trial: Trial, call: int, rank: int) -> tuple[int, int]:
    """Return the seeds of a call's inputs: the rank's own, and the one of all ranks."""
    place = (setup.problem.stem, trial.kind, trial.index, 0 if trial.kind is TrialKind.PROBE else call)
    return seeds.of(*place, rank), seeds.of(*place, "shared")


def _choose_delays(setup: Setup, seeds: Seeds, trial: Trial, call: int) -> dict[int, float]:
    """Return the ranks that are late in a call, and by which share of the platform's longest delay.

    Delays are most of what a trial costs. In the ordinary trials together every rank is clearly late once, in a call
    that cannot be foreseen, and one of them by several times as much as others; in all other calls one rank is late by
    a little. At the hidden size, one rank is late once.
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
    if turn >= setup.world:
        return {turn % setup.world: draw.uniform(*_A_LITTLE)}
    is_longest = turn == seeds.random(stem, "longest delay").randrange(setup.world)
    # As many short ones as long ones: the range is wide, and waiting costs time.
    return {turn: math.exp(draw.uniform(*map(math.log, _LONGEST))) if is_longest else draw.uniform(*_CLEARLY)}


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
    choose = _EXCERPTS.get(trial.kind, Excerpt.of)
    return [choose(shape, seeds.random(*place, k)) for k, shape in enumerate(shapes)]


def describe_recipe(setup: Setup, seeds: Seeds, trial: Trial) -> Recipe | None:
    """Return how a model is built for a trial: with other weights in each, but the same in all that is timed."""
    place = (TrialKind.TIMED, 0) if trial.kind in _TIMED_KINDS else (trial.kind, trial.index)
    own = seeds.of(setup.problem.stem, *place, "state")
    always = choose_construction_seed(setup, seeds)
    return setup.problem.make_recipe(setup.find_size(trial), (always, own), setup.state == BY_NAME, setup.without)


def choose_construction_seed(setup: Setup, seeds: Seeds) -> int:
    return seeds.of(setup.problem.stem, "construction")


def draw_sent_calls(setup: Setup, seeds: Seeds, places: Sequence[Place]) -> list[list[DrawnArguments | None]]:
    """Draw the arguments of calls that are sent, by rank and call; None where the rank draws them from its seed."""
    wanted = [(*place, rank) for rank in range(setup.world) for place in places]
    threads = torch.get_num_threads()
    if len(wanted) == 1 or threads == 1 or weigh_call(setup) < _LITTLE_BYTES:
        drawn = [_draw_sent_call(setup, seeds, *one) for one in wanted]
    else:
        # A thread draws what a rank gets in a call. Torch keeps the last number that any thread sets for new ones.
        with ThreadPoolExecutor(min(threads, _MOST_THREADS), initializer=partial(torch.set_num_threads, 1)) as pool:
            drawn = [*pool.map(lambda one: _draw_sent_call(setup, seeds, *one), wanted)]
        torch.set_num_threads(threads)
    return [drawn[start : start + len(places)] for start in range(0, len(drawn), len(places))]


def _draw_sent_call(setup: Setup, seeds: Seeds, trial: Trial, call: int, rank: int) -> DrawnArguments | None:
    """Draw a call's arguments in the judge; None where the rank draws them from its seed."""
    if not is_sent(setup, seeds, trial, call):
        return None
    own, bump = _find_seeds(setup, seeds, trial, call, rank), _choose_bump(setup, seeds, trial, call, rank)
    return draw_call(setup, seeds, trial, call, rank, own, bump)
