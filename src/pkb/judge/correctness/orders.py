"""Orders that make ranks pose themselves a trial: load, build, draw, run."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from torch import Tensor

from pkb.judge.setup.drawing import (
    choose_construction_seed,
    describe_calls,
    describe_case,
    describe_recipe,
    draw_sent_inputs,
)
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import BY_NAME, BY_SEED, Setup
from pkb.judge.worlds.world import World
from pkb.protocol import messages as m
from pkb.protocol.channel import wire_name
from pkb.trial import Trial, TrialKind


def load_reference(world: World, setup: Setup, file: Path, compiled: str = "") -> None:
    """Load the problem's own solution, as it is or compiled; `file` is the problem's, where the ranks see it."""
    world.ask(m.LoadSolution(str(file), compiled=compiled), "load", setup.limits.load_s)


def start_reference(world: World, setup: Setup, compiled: str = "") -> World:
    """Load the problem's own solution into a trusted world; end the world if that fails."""
    try:
        load_reference(world, setup, setup.problem.path, compiled)
    except BaseException:
        world.end(kill=True)
        raise
    return world


def settle_state(world: World, setup: Setup, seeds: Seeds) -> Setup:
    """Build a candidate's model once; return the setup whose weights it can take."""
    seed = choose_construction_seed(setup, seeds)
    recipe = setup.problem.make_recipe(setup.size, (seed, seed), by_name=False)
    if recipe is None:
        return setup
    order = m.BuildModel(describe_case(setup, Trial(TrialKind.CHECK)), recipe)
    (held,) = world.ask(order, "load", setup.limits.load_s)
    takes = setup.state == BY_NAME and setup.problem.may_load_state(held.shapes, setup.size)
    return replace(setup, state=BY_NAME if takes else BY_SEED)


def draw_inputs(
    world: World,
    setup: Setup,
    seeds: Seeds,
    trial: Trial,
    oracle: bool = False,
    first: int = 0,
    pads: Sequence[int] = (),
) -> None:
    """Have every rank draw the inputs of one trial, from call `first` on; `pads` are bytes to allocate before."""
    case, recipe = describe_case(setup, trial), describe_recipe(setup, seeds, trial)

    def order(rank: int) -> m.DrawInputs:
        calls = describe_calls(setup, seeds, trial, rank, setup.calls, first)
        return m.DrawInputs(case, calls, oracle, recipe, pads=list(pads))

    world.ask(order, "prepare", setup.limits.trial_s)


def order_trial(
    world: World, setup: Setup, seeds: Seeds, trial: Trial, longest_delay: float = 0.0, count: bool = False
) -> None:
    """Have a candidate's ranks begin with a trial, without waiting; with `count`, they count library calls."""
    _order_candidate_inputs(world, setup, seeds, trial, longest_delay)
    if world.size == 1:
        world.send(m.RunCalls(count))


def wait_until_drawn(world: World, setup: Setup, count: bool = False) -> None:
    """Wait for the inputs of the trial that was ordered last; then let several ranks run it."""
    world.collect(m.DrawInputs, "prepare", setup.limits.trial_s)
    if world.size > 1:
        # Only now that all have drawn: they still write to buffers that others use in their calls.
        world.send(m.RunCalls(count))


def _order_candidate_inputs(world: World, setup: Setup, seeds: Seeds, trial: Trial, longest_delay: float) -> None:
    """Have a candidate's ranks draw, in memory that they know, and at the hidden size without seeds of the inputs."""
    sent = draw_sent_inputs(setup, seeds, trial)
    case, recipe = describe_case(setup, trial), describe_recipe(setup, seeds, trial)

    def order(rank: int) -> m.DrawInputs:
        specs = [[_describe_tensor(tensor) for tensor in call] for call in sent[rank]] if sent else None
        calls = describe_calls(setup, seeds, trial, rank, setup.calls, longest_delay=longest_delay, decoy=bool(sent))
        return m.DrawInputs(case, calls, recipe=recipe, reuse_memory=True, sent=specs)

    world.send(order, [list(chain(*calls)) for calls in sent])


def _describe_tensor(tensor: Tensor) -> m.TensorSpec:
    return m.TensorSpec(list(tensor.shape), wire_name(tensor.dtype))
