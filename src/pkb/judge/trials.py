"""What a trial asks of every rank, and what came back."""

import math
import time
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from pkb.case import Case
from pkb.judge.channel import FORGED, ChannelClosed, Message, wire_name
from pkb.judge.failure import Failure
from pkb.judge.given import Formless, given
from pkb.judge.limits import Limits
from pkb.judge.seeds import Seeds
from pkb.judge.world import World
from pkb.problem import Problem, Size
from pkb.trees import Form, well_formed

FIRST_TIMED_TRIAL = 1_000_000
"""Timed blocks count on from here: their seeds are never those of checked trials."""
HIDDEN_TRIAL = 500_000
"""A size that no candidate is told of."""
PROBE_TRIAL = 500_001
"""The same inputs in every call, but for one element of one rank: what depends on it must move."""
WHOLE_TRIAL = 1
"""The trial that draws whole numbers, for problems whose sums are then exact."""
BY_NAME, BY_SEED = "by name", "by seed"
"""Where a model's weights come from: drawn for each of the reference's names, or the constructor's own."""


@dataclass(frozen=True)
class Setup:
    """A problem posed: everything that reference and candidate must have in common."""

    problem: Problem
    size: Size
    dtype: str
    world: int
    trials: int = 5
    calls: int = 3
    """Back-to-back calls in one trial, without a host synchronisation between them."""
    limits: Limits = field(default_factory=Limits)
    extra: tuple[int, ...] = (HIDDEN_TRIAL, PROBE_TRIAL)
    """Trials beyond the ordinary ones."""
    state: str = ""
    """Of a model: BY_NAME or BY_SEED."""
    published: bool = False
    """Of a model: inputs and weights as the public convention has them."""
    without: str = ""
    """Of a model: a weight that is left as the constructor made it, to see whether that shows."""

    def __post_init__(self) -> None:
        self.problem.case(self.size, self.dtype, self.world)

    @property
    def all_trials(self) -> tuple[int, ...]:
        return (*range(self.trials), *self.extra)

    def of_a_model(self, published: bool) -> "Setup":
        """With sound weights and inputs, and a hidden size where there is one; or all as published."""
        if published:
            return replace(self, published=True, state=BY_SEED, extra=())
        hidden = (HIDDEN_TRIAL,) if self.problem.hidden_size(self.dtype, self.world) else ()
        return replace(self, state=BY_NAME, extra=(*hidden, PROBE_TRIAL))

    def facts(self) -> dict[str, Any]:
        """What a record says about how the problem was posed."""
        drawn = {"inputs": "published" if self.published else "sound", "state": self.state} if self.state else {}
        flaw = {"degenerate": self.problem.degenerate} if self.problem.degenerate else {}
        return self.size.facts() | {"dtype": self.dtype, "world": self.world} | drawn | flaw

    def size_of(self, trial: int) -> Size:
        hidden = self.problem.hidden_size(self.dtype, self.world) if trial == HIDDEN_TRIAL else None
        return hidden or self.size

    def case(self, rank: int, trial: int) -> Case:
        size, whole = self.size_of(trial), self.whole(trial)
        seeds: dict[str, Any] = {"trial": _variant(trial), "whole": whole, "published": self.published}
        return self.problem.case(size, self.dtype, self.world, rank, **seeds)

    def whole(self, trial: int) -> bool:
        return self.problem.exact_sums and trial == min(WHOLE_TRIAL, self.trials - 1)

    def shape(self, trial: int) -> Message:
        return {
            "size": asdict(self.size_of(trial)),
            "dtype": self.dtype,
            "trial": _variant(trial),
            "whole": self.whole(trial),
            "published": self.published,
            "on_host": self._is_sent(trial),
        }

    def _is_sent(self, trial: int) -> bool:
        """Whether the judge draws the inputs itself: a seed is worth something only to others."""
        return trial == HIDDEN_TRIAL and self.world > 1

    def recipe(self, seeds: Seeds, trial: int) -> Message | None:
        """How a model is built for a trial: with other weights in each, but the same in all that is timed."""
        seed = seeds.of(self.problem.stem, min(trial, FIRST_TIMED_TRIAL), "state")
        return self.problem.recipe(self.size_of(trial), seed, self.state == BY_NAME, self.without)

    def agreed(self, world: World, seeds: Seeds) -> "Setup":
        """Build a candidate's model once, to see what it holds: this setup, or one whose weights it can be given."""
        recipe = self.problem.recipe(self.size, seeds.of(self.problem.stem, "thrown away"), by_name=False)
        if recipe is None:
            return self
        (answer,) = world.ask({"do": "hold", "case": self.shape(0), "recipe": recipe}, "load", self.limits.load_s)
        try:
            held = {str(name): [int(size) for size in shape] for name, shape in answer["held"].items()}
        except FORGED as error:
            raise garbled(world, 0, "load") from error
        taken = self.state == BY_NAME and self.problem.takes(held, self.size)
        return replace(self, state=BY_NAME if taken else BY_SEED)

    def prepare(
        self, world: World, seeds: Seeds, trial: int, oracle: bool = False, jitter: float = 0.0, first: int = 0
    ) -> None:
        """Have every rank draw the inputs of one trial, from call `first` on, each from seeds of its own."""

        def message(rank: int) -> Message:
            drawing = self.drawing(seeds, trial, rank, self.calls, first, jitter)
            return {"do": "prepare", "oracle": oracle, "recipe": self.recipe(seeds, trial), **drawing}

        world.ask(message, "prepare", self.limits.trial_s)

    def prepare_warily(self, world: World, seeds: Seeds, trial: int, jitter: float) -> None:
        """The same for a candidate: in memory that it knows, and at the hidden size without seeds of the inputs."""
        sent = self._given(seeds, trial) if self._is_sent(trial) else []

        def message(rank: int) -> Message:
            facts = [[_facts(tensor) for tensor in call] for call in sent[rank]] if sent else None
            drawing = self.drawing(seeds, trial, rank, self.calls, jitter=jitter, decoy=bool(sent))
            return {"do": "prepare", "wear": True, "given": facts, "recipe": self.recipe(seeds, trial), **drawing}

        world.ask(message, "prepare", self.limits.trial_s, [list(chain(*calls)) for calls in sent])

    def _given(self, seeds: Seeds, trial: int) -> list[list[list[Tensor]]]:
        """What the judge draws, by rank and call; nothing where ranks must draw for themselves."""
        try:
            return [
                [given(self.problem, *self._cases(seeds, trial, call, rank)) for call in range(self.calls)]
                for rank in range(self.world)
            ]
        except Formless:
            return []

    def _cases(self, seeds: Seeds, trial: int, call: int, rank: int) -> list[Case]:
        """A call's case, and the one that a rank draws in its place."""
        orders = [self._call(seeds, trial, call, rank, jitter=0.0, decoy=decoy) for decoy in (False, True)]
        case = self.case(rank, trial)
        return [replace(case, seed=order["seed"], shared_seed=order["shared_seed"]) for order in orders]

    def drawing(
        self,
        seeds: Seeds,
        trial: int,
        rank: int,
        count: int,
        first: int = 0,
        jitter: float = 0.0,
        decoy: bool = False,
    ) -> Message:
        """What a rank must know to draw the inputs of so many calls, or, as a decoy, only their form."""
        calls = [self._call(seeds, trial, first + call, rank, jitter, decoy) for call in range(count)]
        return {"case": self.shape(trial), "calls": calls}

    def _call(self, seeds: Seeds, trial: int, call: int, rank: int, jitter: float, decoy: bool = False) -> Message:
        place = (self.problem.stem, trial, call)
        drawn = (self.problem.stem, trial, 0) if trial == PROBE_TRIAL else (*place, "decoy") if decoy else place
        late = seeds.random(*place, "late")
        # Alone, nobody can be late.
        slow_rank, delay = late.randrange(self.world), late.uniform(0.25, 1.0) * jitter * (self.world > 1)
        return {
            "seed": seeds.of(*drawn, rank),
            "shared_seed": seeds.of(*drawn, "shared"),
            "delay": delay if rank == slow_rank else 0.0,
            "bump": self._bump(seeds, trial, call, rank),
        }

    def _bump(self, seeds: Seeds, trial: int, call: int, rank: int) -> list[float]:
        """Where this rank changes one element of its inputs, as shares of tensors and elements; empty for nowhere."""
        if trial != PROBE_TRIAL or call == 0:
            return []
        place = seeds.random(self.problem.stem, "bump", call)
        return [place.random(), place.random()] if place.randrange(self.world) == rank else []


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


def run_trial(world: World, setup: Setup, phase: str, count: bool = False) -> list[Result]:
    """Run the prepared calls. The tensors' bytes wait in the channels: read them with `tensors_of`, in order."""
    answers = world.ask({"do": "run", "count": count}, phase, setup.limits.trial_s)
    parsed = (_parsed(answer, rank, setup.calls, world, phase) for rank, answer in enumerate(answers))
    return [result for results in parsed for result in results]


def kept_results(world: World, call: int, seconds: float) -> list[Result]:
    """What a call of the last timed block returned on every rank. Read the tensors with `tensors_of`."""
    answers = world.ask({"do": "kept", "call": call}, "a timed call's results", seconds)
    return [_parsed(answer, rank, 1, world, "a timed call's results")[0] for rank, answer in enumerate(answers)]


def tensors_of(result: Result, world: World, seconds: float) -> list[Tensor]:
    deadline = time.monotonic() + seconds
    channel = world.channels[result.rank]
    try:
        return [channel.receive_tensor(leaf.shape, leaf.dtype, deadline) for leaf in result.leaves]
    except (ChannelClosed, TimeoutError) as error:
        raise garbled(world, result.rank, "hand over its results") from error


def _variant(trial: int) -> int:
    """Problems vary what they pose from trial to trial; what is timed is always the first."""
    return trial if trial < HIDDEN_TRIAL else 0


def _facts(tensor: Tensor) -> Message:
    return {"shape": list(tensor.shape), "dtype": wire_name(tensor.dtype)}


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


def garbled(world: World, rank: int, phase: str) -> Failure:
    """A rank that did not answer as agreed."""
    return Failure(
        world.blame,
        f"rank {rank} broke the judge's protocol ({phase}); a candidate must leave file descriptors alone that it "
        "did not open",
        rank=rank,
        phase=phase,
        check="protocol",
    )
