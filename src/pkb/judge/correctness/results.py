"""What the ranks returned: first the description of each result, then the tensors."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pkb.base.pytree import Form
from pkb.judge.setup.drawing import choose_excerpts
from pkb.judge.setup.seeds import Seeds
from pkb.judge.setup.setup import Setup
from pkb.judge.worlds.rank_failures import describe_garbled_answer
from pkb.judge.worlds.world import World
from pkb.protocol import messages as m
from pkb.protocol.bounds import DTYPES, count_bytes
from pkb.protocol.spot_check import Excerpt
from pkb.protocol.sums import Sums
from pkb.trial import Trial

_TIMED_RESULTS = "a timed call's results"


@dataclass(frozen=True)
class Leaf:
    """One tensor of a result as its rank describes it, before its bytes are read."""

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
        return count_bytes(self.shape, self.dtype)

    @property
    def is_strided(self) -> bool:
        """Whether its elements do not lie in memory one after another. Strides of dims of one element mean nothing."""
        if self.strides is None or 0 in self.shape:
            return False
        found = [step for size, step in zip(self.shape, self.strides, strict=True) if size != 1]
        return found != [math.prod(self.shape[k + 1 :]) for k, size in enumerate(self.shape) if size != 1]


@dataclass(frozen=True)
class Result:
    """What one call returned on one rank."""

    rank: int
    call: int
    form: Form
    leaves: list[Leaf]
    changed: list[str]
    """Arguments that are not what they were."""
    has_added: bool = False
    """Whether the rank has added up 16-bit floats of three ranks or more as it was told to."""


Outputs = dict[tuple[int, int], list[Tensor]]
"""(call, rank): the tensors that were returned, or excerpts of them."""


def run_calls(world: World, setup: Setup, phase: str, sums: Sums = Sums.NATIVE) -> list[Result]:
    """Run the drawn calls. The ranks hold what they returned: fetch it with `fetch_tensors`."""
    world.send(m.RunCalls(sums=sums))
    return collect_results(world, setup, phase)


def collect_results(world: World, setup: Setup, phase: str) -> list[Result]:
    """Return the results of the calls that are under way."""
    answers = world.collect(m.RunCalls, phase, setup.limits.trial_s)
    by_rank = (_list_results(answer, rank, setup.calls, world, phase) for rank, answer in enumerate(answers))
    return [result for results in by_rank for result in results]


def hold_timed_results(world: World, call: int, seconds: float) -> list[Result]:
    """Return what a call of the last timed block returned on every rank. Fetch it with `fetch_tensors`."""
    answers = world.ask(m.HoldTimedResult(call), _TIMED_RESULTS, seconds)
    return [_list_results(answer, rank, 1, world, _TIMED_RESULTS)[0] for rank, answer in enumerate(answers)]


def fetch_tensors(
    world: World, setup: Setup, seeds: Seeds, trial: Trial, results: Sequence[Result], first: int = 0
) -> Outputs:
    """Fetch the tensors of these results, which the ranks hold; of large ones an excerpt that no rank could foresee."""
    wanted = {(r.call, r.rank): find_excerpts(r, setup, seeds, trial, first) for r in results}
    return fetch_excerpts(world, results, wanted, setup.limits.trial_s)


def fetch_excerpts(
    world: World, results: Sequence[Result], wanted: Mapping[tuple[int, int], Sequence[Excerpt | None]], seconds: float
) -> Outputs:
    """Fetch what is wanted, by call and rank, of the results that the ranks hold."""

    def order(rank: int) -> m.SendTensors:
        calls = sorted(call for call, owner in wanted if owner == rank)
        return m.SendTensors([[e.list_pieces() if e else None for e in wanted[call, rank]] for call in calls])

    world.ask(order, "its results", seconds)
    deadline = time.monotonic() + seconds
    ordered = sorted(results, key=lambda r: (r.rank, r.call))
    return {(r.call, r.rank): _receive(world, r, wanted[r.call, r.rank], deadline) for r in ordered}


def find_excerpts(result: Result, setup: Setup, seeds: Seeds, trial: Trial, first: int = 0) -> list[Excerpt | None]:
    """Return what is compared of each tensor of a result; None for all of it."""
    shapes = [leaf.shape for leaf in result.leaves]
    return choose_excerpts(setup, seeds, trial, first + result.call, result.rank, shapes)


def _receive(world: World, result: Result, excerpts: Sequence[Excerpt | None], deadline: float) -> list[Tensor]:
    shapes = [excerpt.shape if excerpt else leaf.shape for leaf, excerpt in zip(result.leaves, excerpts, strict=True)]
    specs = [(shape, leaf.dtype) for shape, leaf in zip(shapes, result.leaves, strict=True)]
    return world.receive_tensors(result.rank, specs, "hand over its results", deadline)


def _list_results(answer: m.CallResults, rank: int, calls: int, world: World, phase: str) -> list[Result]:
    if len(answer.results) != calls:
        cause = f"results of {len(answer.results)} calls, not of {calls}"
        raise describe_garbled_answer(world.blame, rank, phase, cause)
    return [
        Result(rank, call, report.form, [*map(_make_leaf, report.leaves)], report.changed, answer.has_added)
        for call, report in enumerate(answer.results)
    ]


def _make_leaf(report: m.LeafReport) -> Leaf:
    return Leaf(
        type=report.type,
        shape=tuple(report.shape),
        dtype=DTYPES[report.dtype],
        device=report.device,
        strides=None if report.strides is None else tuple(report.strides),
        aliases=tuple(report.aliases),
        reuses=tuple(report.reuses),
    )
