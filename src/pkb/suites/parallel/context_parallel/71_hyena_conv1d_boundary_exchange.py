"""Causal depthwise convolution along a sequence that is spread over the ranks in zigzag order.

The sequence has 2W chunks of equal length. Rank r holds chunk r in the first half of x and chunk 2W - 1 - r in the
second; the result has the same places. Each output sees the k - 1 columns before it, across the borders of chunks;
before the first chunk there are zeros. Every rank convolves with its own weight, without a flip.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def halos(
    first: torch.Tensor, second: torch.Tensor, width: int, group: dist.ProcessGroup | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The columns that come before each of the two chunks, from the ranks on both sides."""
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    first_tail, second_tail = (half[..., half.shape[-1] - width :] for half in (first, second))

    # First halves run up through the ranks, second halves back down.
    tails = {rank - 1: second_tail, rank + 1: first_tail}
    sent = torch.cat([tails.get(peer, first.new_empty(0)).flatten() for peer in range(world)])
    sizes = [first_tail.numel() if peer in tails else 0 for peer in range(world)]
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, sizes, sizes, group=group)

    incoming = received.split(sizes)
    before_first = incoming[rank - 1].view(first_tail.shape) if rank > 0 else torch.zeros_like(first_tail)
    before_second = incoming[rank + 1].view(first_tail.shape) if rank < world - 1 else first_tail
    return before_first, before_second


def convolved(before: torch.Tensor, chunk: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.conv1d(torch.cat((before, chunk), dim=-1), weight, groups=weight.shape[0])


def solution(x: torch.Tensor, weight: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    before_first, before_second = halos(first, second, weight.shape[-1] - 1, group)
    return torch.cat((convolved(before_first, first, weight), convolved(before_second, second, weight)), dim=-1)


PROBLEM = Problem(
    category="Context Parallel",
    source="short convolution of StripedHyena 2 / Evo 2 under zigzag context parallelism (Savanna, NeMo)",
    sizes={"tiny": Size(3, 8), "paper": Size(1024, 1024), "large": Size(4096, 65536)},
    requires={"a chunk of N columns holds the 8 that the longest filter reaches back": lambda case: case.n >= 8},
    deviations={
        "values": (
            "`weight` is scaled by the number of taps, so that results are of order 1 and an error can be told from "
            "rounding"
        ),
        "variants": (
            "later trials pose a batch of two in `x`, and filters (`weight`) of 4, 9 and 1 taps, the last without a "
            "halo; one rank works"
        ),
    },
)


def shape(case):
    """Batch, and taps of the filter: in some trials no halo at all, or at N = 8 the whole chunk before."""
    return 2 if case.trial in (1, 2) else 1, {1: 4, 2: 9, 3: 1}.get(case.trial, 7)


def inputs(case):
    batch, taps = shape(case)
    return case.randn(batch, case.m, 2 * case.n), case.randn(case.m, 1, taps, scale=taps**-0.5)


def cost(case):
    batch, taps = shape(case)
    outputs = batch * case.m * 2 * case.n
    halo = batch * case.m * (taps - 1) * case.itemsize
    neighbours = (case.rank > 0) + (case.rank < case.world - 1)
    return Cost(
        flops=2 * taps * outputs,
        hbm=(2 * outputs + case.m * taps) * case.itemsize,
        link=Link(neighbours * halo, neighbours * halo),
    )


def zeros_before_every_chunk(x, weight, group=None):
    padded = (F.pad(chunk, (weight.shape[-1] - 1, 0)) for chunk in x.chunk(2, dim=-1))
    return torch.cat([F.conv1d(chunk, weight, groups=weight.shape[0]) for chunk in padded], dim=-1)


def halves_taken_for_neighbours(x, weight, group=None):
    first, second = x.chunk(2, dim=-1)
    right = solution(x, weight, group)
    own_tail = first[..., first.shape[-1] - weight.shape[-1] + 1 :]
    return torch.cat((right.chunk(2, dim=-1)[0], convolved(own_tail, second, weight)), dim=-1)


def filter_flipped(x, weight, group=None):
    return solution(x, weight.flip(-1), group)


MUTANTS = {
    "zeros_before_every_chunk": zeros_before_every_chunk,
    "halves_taken_for_neighbours": halves_taken_for_neighbours,
    "filter_flipped": filter_flipped,
}
