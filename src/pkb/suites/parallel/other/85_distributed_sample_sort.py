"""Sorts numbers that are spread over the ranks and deals them out again in equal contiguous pieces.

Rank 0 returns the smallest piece; where the total does not divide, the first ranks hold one number more. Shards
differ in length and may be empty, also all of them.
"""

from itertools import pairwise

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def sizes_of_all(local: torch.Tensor, group: dist.ProcessGroup | None) -> list[int]:
    own = torch.tensor([local.numel()], device=local.device)
    sizes = own.new_empty(dist.get_world_size(group))
    dist.all_gather_into_tensor(sizes, own, group=group)
    return sizes.tolist()


def splitters(ordered: torch.Tensor, sizes: list[int], group: dist.ProcessGroup | None) -> torch.Tensor:
    """W - 1 values that divide all ranks' numbers about evenly: regular samples of every rank that has any."""
    world, own = len(sizes), ordered.numel()
    places = torch.arange(world, device=ordered.device) * own // world
    samples = ordered[places] if own else ordered.new_zeros(world)
    gathered = samples.new_empty(world, world)
    dist.all_gather_into_tensor(gathered.flatten(), samples, group=group)
    active = [rank for rank, size in enumerate(sizes) if size]
    return gathered[active].flatten().sort().values[len(active) :: len(active)]


def to_buckets(ordered: torch.Tensor, sizes: list[int], group: dist.ProcessGroup | None) -> torch.Tensor:
    """Bucket r of every rank goes to rank r, which sorts what it receives."""
    cuts = torch.searchsorted(ordered, splitters(ordered, sizes, group))
    bounds = torch.cat((cuts.new_zeros(1), cuts, cuts.new_tensor([ordered.numel()])))
    sent = bounds.diff()
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    bucket = ordered.new_empty(int(received.sum()))
    dist.all_to_all_single(bucket, ordered, received.tolist(), sent.tolist(), group=group)
    return bucket.sort().values


def rebalance(bucket: torch.Tensor, group: dist.ProcessGroup | None) -> torch.Tensor:
    sizes, rank = sizes_of_all(bucket, group), dist.get_rank(group)
    total, world = sum(sizes), len(sizes)
    held = [(sum(sizes[:r]), sum(sizes[: r + 1])) for r in range(world)]
    starts = [r * (total // world) + min(r, total % world) for r in range(world + 1)]
    wanted = list(pairwise(starts))
    sent = [shared_length(held[rank], piece) for piece in wanted]
    received = [shared_length(interval, wanted[rank]) for interval in held]
    piece = bucket.new_empty(sum(received))
    dist.all_to_all_single(piece, bucket, received, sent, group=group)
    return piece


def shared_length(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def solution(local_shard: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    sizes = sizes_of_all(local_shard, group)
    if sum(sizes) == 0:
        return torch.empty_like(local_shard)
    ordered = local_shard.sort().values
    return rebalance(to_buckets(ordered, sizes, group), group)


PROBLEM = Problem(
    category="Other",
    source="sample sort with exact rebalancing (as in cuPyNumeric's distributed sort)",
    sizes={"tiny": Size(300, 1), "paper": Size(1024, 1024), "large": Size(1 << 28, 1)},
    exact=True,
    deviations={
        "values": (
            "cubes of normal values, different in place and spread on each rank; the published ones are 100 whole "
            "numbers, moved by the rank"
        ),
        "variants": (
            "later trials pose skewed shards (`local_shard`), many equal values, sorted shards, and fewer values than "
            "ranks, beside empty shards as published"
        ),
    },
)

ALREADY_SORTED = 2


def shard_sizes(case):
    """Equal shards; then skewed ones, none on odd ranks, and fewer numbers than ranks. N is not used."""
    even = max(4 * case.world, case.m // case.world)
    match case.trial:
        case 1:
            return [even // (rank + 1) + rank for rank in range(case.world)]
        case 3:
            return [0 if rank % 2 else even - rank for rank in range(case.world)]
        case 4:
            return [case.world - 1 if rank == case.world // 2 else 0 for rank in range(case.world)]
    return [even] * case.world


def inputs(case):
    size = shard_sizes(case)[case.rank]
    # Cubes have heavy tails. Ranks differ in place and spread.
    values = case.randn(size, dtype=torch.float32) ** 3 * (1 + case.rank) + case.randn(1, dtype=torch.float32)
    if case.trial == 1:
        common = case.rand(size, dtype=torch.float32) < 0.4
        values = torch.where(common, case.shared.randn(1, dtype=torch.float32), values)
    if case.trial == ALREADY_SORTED:
        step = (torch.arange(size, device=case.device) + case.rand(size, dtype=torch.float32)) / size
        values = case.rank + step - case.world / 2
    return (values.to(case.dtype),)


def cost(case):
    sizes = shard_sizes(case)
    total, own = sum(sizes), sizes[case.rank]
    piece = total // case.world + (case.rank < total % case.world)
    # Of numbers placed at random, a rank holds this many of its own piece from the start. The reference moves most
    # of them twice, to a bucket and on to the piece.
    staying = own * piece / max(total, 1)
    moved = Link(egress=(own - staying) * case.itemsize, ingress=(piece - staying) * case.itemsize)
    # Sorting compares, but no arithmetic is needed.
    return Cost(
        flops=0,
        hbm=(own + piece) * case.itemsize,
        link=Link(0, 0) if case.trial == ALREADY_SORTED else moved,
    )


def own_shard_only(local_shard, group=None):
    return local_shard.sort().values


def buckets_not_rebalanced(local_shard, group=None):
    return to_buckets(local_shard.sort().values, sizes_of_all(local_shard, group), group)


def descending(local_shard, group=None):
    return -solution(-local_shard, group)


MUTANTS = {
    "own_shard_only": own_shard_only,
    "buckets_not_rebalanced": buckets_not_rebalanced,
    "descending": descending,
}
