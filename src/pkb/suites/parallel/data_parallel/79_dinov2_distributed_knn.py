"""Nearest neighbours of every rank's queries in a training set that is spread over the ranks.

Each rank returns, for its own queries, the `max_k` largest inner products with the training features of all ranks
in descending order, and the labels of those samples. Ranks may have different numbers of queries, but as many
training samples. Products that belong to a result differ by several roundings of a 16-bit dtype.
"""

from dataclasses import replace

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link
from pkb.problems.cost import Link


def broadcast_queries(own: torch.Tensor, owner: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    shape = torch.tensor(own.shape, device=own.device)
    dist.broadcast(shape, group=group, group_src=owner)
    queries = own.contiguous() if dist.get_rank(group) == owner else own.new_empty(shape.tolist())
    dist.broadcast(queries, group=group, group_src=owner)
    return queries


def nearest(queries: torch.Tensor, train_T: torch.Tensor, labels: torch.Tensor, k: int) -> tuple[torch.Tensor, ...]:
    similarities, places = (queries @ train_T).topk(k, dim=1)
    return similarities, labels.expand(queries.shape[0], -1).gather(1, places)


def gather_columns(part: torch.Tensor, owner: int, group: dist.ProcessGroup | None) -> torch.Tensor | None:
    """All ranks' columns in rank order, on the owner only."""
    parts = None
    if dist.get_rank(group) == owner:
        parts = [torch.empty_like(part) for _ in range(dist.get_world_size(group))]
    dist.gather(part, parts, group=group, group_dst=owner)
    return torch.cat(parts, dim=1) if parts else None


def solution(
    test_features_rank: torch.Tensor,
    train_features_rank_T: torch.Tensor,
    train_labels_rank: torch.Tensor,
    max_k: int,
    group: dist.ProcessGroup | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    if max_k > train_features_rank_T.shape[1]:
        raise ValueError(f"a rank has {train_features_rank_T.shape[1]} training samples, fewer than max_k = {max_k}")
    for owner in range(dist.get_world_size(group)):
        queries = broadcast_queries(test_features_rank, owner, group)
        found = nearest(queries, train_features_rank_T, train_labels_rank, max_k)
        similarities, labels = (gather_columns(part, owner, group) for part in found)
        if similarities is not None and labels is not None:
            best, places = similarities.topk(max_k, dim=1)
            result = best, labels.gather(1, places)
    return result


PROBLEM = Problem(
    category="Data Parallel",
    source="k-NN evaluation of DINOv2 with sharded training features",
    sizes={"tiny": Size(24, 16), "paper": Size(1024, 1024), "large": Size(16384, 8192)},
    requires={"each rank needs 224 training samples, of which it has 16 N or more": lambda case: case.n >= 14},
    deviations={
        "values": (
            "features are built so that all products are exact and no two neighbours tie, and labels are random: with "
            "published random features near ties leave the labels open in 16 bits"
        ),
        "variants": (
            "in one trial ranks have different numbers of queries (`test_features_rank`), in one all neighbours lie "
            "on one rank"
        ),
    },
)

BLOCK = 8
CLASSES = 1000
# Positive products take values m * 2^e with m of six bits and seven exponents, each once: more than max_k of them.
STEPS, OCTAVES = 32, 7
LEVELS = STEPS * OCTAVES


def shape(case):
    """Queries of a rank, training samples of a rank, feature width, neighbours."""
    queries = min(max(case.m // 64, min(case.m, 32)), 256)
    if case.trial == 2:
        queries = queries // (1 + case.rank % 3)
    samples = min(max(16 * case.n // case.world, min(16 * case.n, 1024)), 16384)
    width = min(4 * case.n, 384) if case.n < 4096 else 768 if case.n < 8192 else 1024
    return queries, samples, width, min(200, samples)


def levels(case, blocks, samples):
    """Mantissa and exponent of the product of every block's queries with this rank's samples.

    For each block, LEVELS samples of the whole set have different positive products, the others negative ones.
    They lie anywhere, or in one trial all on one rank.
    """
    one_rank = case.trial == 1
    pool = samples if one_rank else case.world * samples
    winners = torch.stack([case.shared.randperm(pool)[:LEVELS] for _ in range(blocks)])
    first = torch.arange(blocks, device=case.device).unsqueeze(1) % case.world * samples if one_rank else 0
    places = winners + first - case.rank * samples
    mantissa = -STEPS - case.randint(0, STEPS, blocks, samples)
    exponent = case.randint(0, OCTAVES, blocks, samples)
    block, level = ((places >= 0) & (places < samples)).nonzero(as_tuple=True)
    mantissa[block, places[block, level]] = STEPS + level % STEPS
    exponent[block, places[block, level]] = level // STEPS
    return mantissa, exponent


def inputs(case):
    # Ties or near ties among the products would leave the labels open. So each query looks at one block of
    # features only, through signs that all share; the features of a sample in a block are m plus noise that
    # cancels within the block, times 2^e. All products and their sums are exact, in any order and dtype.
    queries, samples, width, k = shape(case)
    blocks = width // BLOCK
    signs = 2 * case.shared.randint(0, 2, blocks, BLOCK) - 1
    mantissa, exponent = levels(case, blocks, samples)
    noise = case.randint(-STEPS // 2, STEPS // 2 + 1, blocks, BLOCK // 2, samples)
    features = signs.unsqueeze(2) * (mantissa.unsqueeze(1) + torch.cat((noise, -noise), dim=1))
    train_T = features * torch.exp2(exponent.unsqueeze(1) - 10.0)

    block = case.randint(0, blocks, queries)
    test = torch.zeros(queries, blocks, BLOCK, device=case.device)
    size = torch.exp2(case.randint(-6, -3, queries, 1).float())
    test[torch.arange(queries, device=case.device), block] = signs[block] * size
    labels = case.randint(0, CLASSES, 1, samples)
    return test.flatten(1).to(case.dtype), train_T.flatten(0, 1).to(case.dtype), labels, k


def cost(case):
    queries, samples, width, k = shape(case)
    world, s = case.world, case.itemsize
    counts = [shape(replace(case, rank=rank))[0] for rank in range(world)]
    # The queries visit all samples (or the other way round, if those are fewer); a rank's share of the winners
    # comes back, with a label that fits in two bytes. The reference sends every rank's k candidates.
    visits = [min(count, samples) * width * s for count in counts]
    own, winners = visits[case.rank], k * (s + 2) / world
    return Cost(
        flops=2 * sum(counts) * width * samples,
        hbm=(queries + samples) * width * s + queries * k * (s + 8),
        link=link.all_gather_uneven(own, sum(visits), world)
        + Link(egress=(sum(counts) - queries) * winners, ingress=(world - 1) * queries * winners),
    )


def own_samples_only(queries, train_T, labels, max_k, group=None):
    return nearest(queries, train_T, labels, max_k)


def last_rank_left_out(queries, train_T, labels, max_k, group=None):
    is_last = dist.get_rank(group) == dist.get_world_size(group) - 1
    return solution(queries, torch.zeros_like(train_T) if is_last else train_T, labels, max_k, group)


def labels_not_sorted_along(queries, train_T, labels, max_k, group=None):
    similarities, _ = solution(queries, train_T, labels, max_k, group)
    return similarities, nearest(queries, train_T, labels, max_k)[1]


def ascending(queries, train_T, labels, max_k, group=None):
    return tuple(part.flip(1) for part in solution(queries, train_T, labels, max_k, group))


MUTANTS = {
    "own_samples_only": own_samples_only,
    "last_rank_left_out": last_rank_left_out,
    "labels_not_sorted_along": labels_not_sorted_along,
    "ascending": ascending,
}
