"""Orders that make ranks pose themselves a trial: load, build, draw, run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from pkb.judge.setup.drawing import (
    Place,
    choose_construction_seed,
    describe_call,
    describe_case,
    describe_recipe,
    draw_sent_calls,
)
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import BY_NAME, BY_SEED, Setup
from pkb.judge.worlds.world import World
from pkb.protocol import messages as m
from pkb.protocol.channel import wire_name
from pkb.protocol.sent_inputs import DrawnArguments
from pkb.protocol.sums import Sums
from pkb.trial import Trial, TrialKind


def load_reference(world: World, setup: Setup, file: Path, compiled: str = "", scratch: bool = False) -> None:
    """Load the problem's own solution, as it is or compiled; `file` is the problem's, where the ranks see it.

    With `scratch`, the ranks' launches cost what those of a candidate cost in that track.
    """
    world.ask(m.LoadSolution(str(file), compiled=compiled, scratch=scratch), "load", setup.limits.load_s)


def start_reference(world: World, setup: Setup, compiled: str = "", scratch: bool = False) -> World:
    """Load the problem's own solution into a trusted world; end the world if that fails."""
    try:
        load_reference(world, setup, setup.problem.path, compiled, scratch)
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
    draw_calls(world, setup, seeds, [(trial, first + k) for k in range(setup.calls)], oracle, pads)


def draw_calls(
    world: World,
    setup: Setup,
    seeds: Seeds,
    places: Sequence[Place],
    oracle: bool = False,
    pads: Sequence[int] = (),
) -> None:
    """Have every rank draw the inputs of these calls, whose trials differ only by their seeds."""
    posed = PosedCalls.of(setup, seeds, places)
    recipe = describe_recipe(setup, seeds, places[0][0])
    order = partial(posed.make_order, m.DrawInputs, oracle=oracle, recipe=recipe, pads=list(pads))
    world.send(order, posed.tensors)
    world.collect(m.DrawInputs, "prepare", setup.limits.trial_s)


def order_trial(
    world: World, setup: Setup, seeds: Seeds, trial: Trial, longest_delay: float = 0.0, count: bool = False
) -> None:
    """Have a candidate's ranks begin with a trial, without waiting; with `count`, they count library calls."""
    _order_candidate_inputs(world, setup, seeds, trial, longest_delay)
    if world.size == 1:
        world.send(m.RunCalls(count))


def wait_until_drawn(world: World, setup: Setup, count: bool = False, sums: Sums = Sums.NATIVE) -> None:
    """Wait for the inputs of the trial that was ordered last; then let several ranks run it."""
    world.collect(m.DrawInputs, "prepare", setup.limits.trial_s)
    if world.size > 1:
        # Only now that all have drawn: they still write to buffers that others use in their calls.
        world.send(m.RunCalls(count, sums))


def _order_candidate_inputs(world: World, setup: Setup, seeds: Seeds, trial: Trial, longest_delay: float) -> None:
    """Have a candidate's ranks draw, in memory that they know."""
    posed = PosedCalls.of(setup, seeds, [(trial, call) for call in range(setup.calls)], longest_delay)
    recipe = describe_recipe(setup, seeds, trial)
    world.send(partial(posed.make_order, m.DrawInputs, recipe=recipe, reuse_memory=True), posed.tensors)


@dataclass(frozen=True)
class PosedCalls:
    """What all ranks must know, and be sent, to draw the inputs of some calls."""

    case: m.CaseOrder
    calls: list[list[m.CallOrder]]
    """By rank."""
    sent: list[list[DrawnArguments | None]]
    """By rank and call, what the judge has drawn itself."""

    @classmethod
    def of(cls, setup: Setup, seeds: Seeds, places: Sequence[Place], longest_delay: float = 0.0) -> "PosedCalls":
        ranks = range(setup.world)
        calls = [[describe_call(setup, seeds, *place, rank, longest_delay) for place in places] for rank in ranks]
        return cls(describe_case(setup, places[0][0]), calls, draw_sent_calls(setup, seeds, places))

    def make_order(self, kind: type[Any], rank: int, **rest: Any) -> Any:
        """Return a rank's order of this kind, with the facts that it has besides calls."""
        sent = [_describe_arguments(call) for call in self.sent[rank]]
        return kind(self.case, self.calls[rank], sent=sent if any(sent) else [], **rest)

    @property
    def tensors(self) -> list[list[Tensor]]:
        """By rank, all tensors that follow its order."""
        return [[tensor for call in own if call for tensor in call.tensors] for own in self.sent]


def _describe_arguments(drawn: DrawnArguments | None) -> m.SentArguments | None:
    return m.SentArguments(drawn.form, [_describe_tensor(tensor) for tensor in drawn.tensors]) if drawn else None


def _describe_tensor(tensor: Tensor) -> m.TensorSpec:
    return m.TensorSpec(list(tensor.shape), wire_name(tensor.dtype))
