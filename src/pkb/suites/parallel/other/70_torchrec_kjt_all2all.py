"""Jagged bags of sparse features are redistributed: from all features of own samples to own features of all samples.

A rank holds the bags of F features, feature after feature: `lengths` has one entry per bag, `values` (and `weights`)
the contents of the bags back to back. A feature has batch_size bags on this rank, or stride_per_key[f] where that is
given (batch_size then has no meaning); both may differ between ranks. The first key_splits[0] features go to rank 0,
the next key_splits[1] to rank 1, and so on; an entry may be 0.

The result is ordered by own feature, then by source rank, then by bag. With a stagger of s, a divisor of W, the source
ranks come in the order 0, W/s, 2W/s, ..., 1, W/s + 1, ...

Returns a dict with "lengths" and "values"; then "stride", the number of samples of all ranks (0-d), and
"stride_per_rank" in plain rank order, both int64, or, where stride_per_key is given, "stride_per_key_per_rank": the
int64 counts of bags by own feature and source rank, in the staggered order; and "weights" last, where given.
"""

from itertools import accumulate

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def exchange(flat: torch.Tensor, sent: list[int], received: list[int], group) -> torch.Tensor:
    result = flat.new_empty(sum(received))
    dist.all_to_all_single(result, flat, received, sent, group=group)
    return result


def sums(flat: torch.Tensor, sizes: list[int]) -> list[int]:
    """Sum over each run of consecutive entries."""
    ends = torch.tensor([0, *accumulate(sizes)], device=flat.device)
    return F.pad(flat.cumsum(0), (1, 0))[ends].diff().tolist()


def regrouped(flat: torch.Tensor, sizes: list[int], order: list[int]) -> torch.Tensor:
    """The runs of consecutive entries, put in another order."""
    runs = flat.split(sizes)
    return torch.cat([flat[:0], *(runs[i] for i in order)])


def gather_strides(batch_size: int, device: torch.device, group) -> torch.Tensor:
    own = torch.tensor([batch_size], device=device)
    every = own.new_empty(dist.get_world_size(group))
    dist.all_gather_into_tensor(every, own, group=group)
    return every


def staggered(world: int, stagger: int) -> list[int]:
    width = world // stagger
    return [x + width * y for x in range(width) for y in range(stagger)]


def solution(
    lengths: torch.Tensor,
    values: torch.Tensor,
    key_splits: list[int],
    batch_size: int,
    pg: dist.ProcessGroup | None = None,
    weights: torch.Tensor | None = None,
    stride_per_key: list[int] | None = None,
    stagger: int = 1,
) -> dict[str, torch.Tensor]:
    world, features = dist.get_world_size(pg), key_splits[dist.get_rank(pg)]
    sources = staggered(world, stagger)

    # Bags by source rank (row) and own feature (column).
    if stride_per_key is None:
        stride_per_rank = gather_strides(batch_size, lengths.device, pg)
        bags = stride_per_rank.unsqueeze(1).expand(world, features)
        summary = {"stride": stride_per_rank.sum(), "stride_per_rank": stride_per_rank}
        own_bags = torch.full((sum(key_splits),), batch_size, device=lengths.device)
    else:
        own_bags = torch.tensor(stride_per_key, dtype=torch.int64, device=lengths.device)
        bags = exchange(own_bags, key_splits, [features] * world, pg).view(world, features)
        summary = {"stride_per_key_per_rank": bags[sources].T.contiguous()}

    bags_sent, bags_received = sums(own_bags, key_splits), bags.sum(1).tolist()
    by_source = exchange(lengths, bags_sent, bags_received, pg)
    sent, received = sums(lengths, bags_sent), sums(by_source, bags_received)

    order = [source * features + feature for feature in range(features) for source in sources]
    bags = bags.flatten().tolist()
    entries = sums(by_source, bags)
    result = {
        "lengths": regrouped(by_source, bags, order),
        "values": regrouped(exchange(values, sent, received, pg), entries, order),
        **summary,
    }
    if weights is not None:
        result["weights"] = regrouped(exchange(weights, sent, received, pg), entries, order)
    return result


PROBLEM = Problem(
    category="Other",
    source="KeyedJaggedTensor all-to-all of torchrec (table-wise sharded embeddings)",
    sizes={"tiny": Size(8, 3), "paper": Size(1024, 20), "large": Size(131072, 100)},
    exact=True,
    deviations={
        "values": "bags have 0 to 20 `values`, not 5 to 20: empty ones occur",
        "variants": (
            "later trials pose ranks without features (`key_splits`), other batch sizes for each rank (`batch_size`, "
            "`lengths`) and each feature (`stride_per_key`), `weights`, and `stagger` 2"
        ),
    },
)


def features_of_ranks(case):
    """Features of each rank. In two trials some have none."""
    return [(rank + 1) % 3 if case.trial in (1, 3) else 1 + rank % 3 for rank in range(case.world)]


def samples(case, rank):
    return max(1, case.m // 2) + (rank if case.trial in (1, 3) else 0)


def inputs(case):
    splits, batch = features_of_ranks(case), samples(case, case.rank)
    strides = [batch] * sum(splits)
    if own_strides := case.trial in (2, 4):
        strides = [case.integer(0, 2 * batch + 1) for _ in strides]
    lengths = case.randint(0, case.n + 1, sum(strides))
    count = int(lengths.sum())
    values = case.randint(0, 1_000_000, count)
    weights = case.randn(count) if case.trial in (1, 4) else None
    stagger = 2 if case.trial in (3, 4) and case.world % 2 == 0 else 1
    return lengths, values, splits, batch, None, weights, strides if own_strides else None, stagger


def cost(case):
    """With bags of average length."""
    splits, world = features_of_ranks(case), range(case.world)
    own, own_features = samples(case, case.rank), splits[case.rank]
    every = sum(samples(case, rank) for rank in world)
    bag = 8 + case.n / 2 * (8 + (case.itemsize if case.trial in (1, 4) else 0))
    return Cost(
        flops=0,
        hbm=bag * (own * sum(splits) + every * own_features),
        link=Link(egress=bag * own * (sum(splits) - own_features), ingress=bag * (every - own) * own_features),
    )


def values_left_by_source(lengths, values, key_splits, *rest):
    result = solution(lengths, values, key_splits, *rest)
    if "stride_per_rank" in result:
        strides, features = result["stride_per_rank"].tolist(), key_splits[dist.get_rank()]
        entries = sums(result["lengths"], strides * features)
        order = [feature * len(strides) + source for source in range(len(strides)) for feature in range(features)]
        result["values"] = regrouped(result["values"], entries, order)
    return result


def stagger_ignored(*args):
    return solution(*args[:7])


def batch_sizes_taken_for_equal(lengths, values, key_splits, batch_size, *rest):
    result = solution(lengths, values, key_splits, batch_size, *rest)
    if "stride" in result:
        result["stride"] = torch.full_like(result["stride"], batch_size * dist.get_world_size())
    return result


MUTANTS = {
    "values_left_by_source": values_left_by_source,
    "stagger_ignored": stagger_ignored,
    "batch_sizes_taken_for_equal": batch_sizes_taken_for_equal,
}
