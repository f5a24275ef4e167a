"""What the ranks returned: first what there is to say about it, then the tensors."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pkb.base.pytree import Form, well_formed
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.world import World, garbled
from pkb.protocol.channel import FORGED, ChannelClosed, Message
from pkb.protocol.spot_check import Excerpt


@dataclass(frozen=True)
class Leaf:
    """What a rank says about one tensor of a result, before its bytes are read."""

    type: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: str
    strides: tuple[int, ...] | None
    aliases: tuple[str, ...]
    """Arguments whose memory it shares."""
    reuses: tuple[int, ...]
    """Earlier calls of the trial whose results it shares memory with."""

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Result:
    """What one call returned on one rank."""

    rank: int
    call: int
    form: Form
    leaves: list[Leaf]
    changed: list[str]
    """Arguments that are not what they were."""


Outputs = dict[tuple[int, int], list[Tensor]]
"""(call, rank): the tensors that were returned, or excerpts of them."""


def run_trial(world: World, setup: Setup, phase: str) -> list[Result]:
    """Run the prepared calls. The ranks hold what they returned: fetch it with `handed_over`."""
    world.tell({"do": "run"})
    return heard_results(world, setup, phase)


def order_trial(world: World, setup: Setup, seeds: Seeds, trial: int, jitter: float = 0.0, count: bool = False) -> None:
    """Have a candidate's ranks begin with a trial, without waiting; with `count`, they count library calls."""
    setup.order_warily(world, seeds, trial, jitter)
    if world.size == 1:
        world.tell({"do": "run", "count": count})


def results_of_trial(world: World, setup: Setup, trial: int, count: bool = False) -> list[Result]:
    """Of the trial that was ordered last."""
    world.hear("prepare", setup.limits.trial_s)
    if world.size > 1:
        # Now that all have prepared: they still write to buffers that others use in their calls.
        world.tell({"do": "run", "count": count})
    return heard_results(world, setup, f"trial {trial}")


def heard_results(world: World, setup: Setup, phase: str) -> list[Result]:
    answers = world.hear(phase, setup.limits.trial_s)
    parsed = (_parsed(answer, rank, setup.calls, world, phase) for rank, answer in enumerate(answers))
    return [result for results in parsed for result in results]


def kept_results(world: World, call: int, seconds: float) -> list[Result]:
    """What a call of the last timed block returned on every rank. Fetch it with `handed_over`."""
    answers = world.ask({"do": "kept", "call": call}, "a timed call's results", seconds)
    return [_parsed(answer, rank, 1, world, "a timed call's results")[0] for rank, answer in enumerate(answers)]


def handed_over(
    world: World, setup: Setup, seeds: Seeds, trial: int, results: Sequence[Result], first: int = 0
) -> Outputs:
    """The tensors of these results, which the ranks hold; of large ones an excerpt, of which no rank knew before."""
    wanted = {(r.call, r.rank): excerpts_of(r, setup, seeds, trial, first) for r in results}

    def message(rank: int) -> Message:
        calls = sorted(call for call, owner in wanted if owner == rank)
        return {"do": "hand_over", "pieces": [[e and e.told() for e in wanted[call, rank]] for call in calls]}

    seconds = setup.limits.trial_s
    world.ask(message, "its results", seconds)
    deadline = time.monotonic() + seconds
    ordered = sorted(results, key=lambda r: (r.rank, r.call))
    return {(r.call, r.rank): _received(world, r, wanted[r.call, r.rank], deadline) for r in ordered}


def excerpts_of(result: Result, setup: Setup, seeds: Seeds, trial: int, first: int = 0) -> list[Excerpt | None]:
    """What is compared of each tensor; None for all of it."""
    shapes = [leaf.shape for leaf in result.leaves]
    return setup.excerpts(seeds, trial, first + result.call, result.rank, shapes)


def _received(world: World, result: Result, excerpts: list[Excerpt | None], deadline: float) -> list[Tensor]:
    channel = world.channels[result.rank]
    shapes = [excerpt.shape if excerpt else leaf.shape for leaf, excerpt in zip(result.leaves, excerpts, strict=True)]
    try:
        pairs = zip(shapes, result.leaves, strict=True)
        return [channel.receive_tensor(shape, leaf.dtype, deadline) for shape, leaf in pairs]
    except (ChannelClosed, TimeoutError) as error:
        raise garbled(world, result.rank, "hand over its results") from error


def _parsed(answer: Message, rank: int, calls: int, world: World, phase: str) -> list[Result]:
    try:
        results = [_result(answer["results"][call], rank, call) for call in range(calls)]
    except FORGED as error:
        raise garbled(world, rank, phase) from error
    return results


def _result(raw: Message, rank: int, call: int) -> Result:
    leaves = [_leaf(leaf) for leaf in raw["leaves"]]
    if not well_formed(raw["form"], len(leaves)):
        raise ValueError("form")
    return Result(rank, call, raw["form"], leaves, [str(name) for name in raw["changed"]])


def _leaf(raw: Message) -> Leaf:
    dtype = getattr(torch, raw["dtype"])
    if not isinstance(dtype, torch.dtype):
        raise TypeError("dtype")
    return Leaf(
        type=str(raw["type"]),
        shape=tuple(int(size) for size in raw["shape"]),
        dtype=dtype,
        device=str(raw["device"]),
        strides=None if raw["strides"] is None else tuple(int(stride) for stride in raw["strides"]),
        aliases=tuple(str(name) for name in raw["aliases"]),
        reuses=tuple(int(call) for call in raw["reuses"]),
    )
