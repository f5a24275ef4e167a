"""Place of each positive edge's score among those of its negative edges, for the edges of all ranks.

The scores go through a sigmoid in their own dtype. The place is 1 plus the number of negatives that score higher; the
inputs keep every positive clear of its negatives, so that it never ties. Ranks hold different numbers of edges, and
all return the places of all edges in rank order.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def gather_rows(rows: torch.Tensor, counts: list[int], group: dist.ProcessGroup | None) -> torch.Tensor:
    """All ranks' rows, in rank order: an all-gather that allows a different number on each."""
    world = len(counts)
    copies = rows.repeat(world, *[1] * (rows.dim() - 1))
    gathered = rows.new_empty(sum(counts), *rows.shape[1:])
    dist.all_to_all_single(gathered, copies, counts, [rows.shape[0]] * world, group=group)
    return gathered


def shared_scores(
    local_pos_scores: torch.Tensor, local_neg_scores: torch.Tensor, group: dist.ProcessGroup | None
) -> torch.Tensor:
    """One row per edge of any rank: the positive score, then the negative ones."""
    count = torch.tensor([local_pos_scores.shape[0]], device=local_pos_scores.device)
    counts = count.new_empty(dist.get_world_size(group))
    dist.all_gather_into_tensor(counts, count, group=group)
    pos = gather_rows(local_pos_scores, counts.tolist(), group)
    neg = gather_rows(local_neg_scores, counts.tolist(), group)
    return torch.cat((pos.unsqueeze(1), neg), dim=1)


def solution(
    local_pos_scores: torch.Tensor, local_neg_scores: torch.Tensor, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    scores = torch.sigmoid(shared_scores(local_pos_scores, local_neg_scores, group))
    order = torch.sort(scores, dim=1, descending=True).indices
    return order.argmin(dim=1) + 1


PROBLEM = Problem(
    category="Graph Parallel",
    source="link-prediction evaluation of GraphStorm (mean reciprocal rank, scores shared between trainers)",
    sizes={"tiny": Size(24, 40), "paper": Size(1024, 1024), "large": Size(1_000_000, 1000)},
    exact=True,
    deviations={
        "values": (
            "each edge beats a share of its negatives of its own, by a margin, so that all ranks of the result occur "
            "and rounding changes none; sizes of `local_pos_scores` and `local_neg_scores` differ between ranks as "
            "published"
        ),
    },
)

# The sigmoids of two scores this far apart, one of them in [-2, 2], are at least 6 steps of bfloat16 apart.
GAP = 0.25


def shape(case):
    """Edges of each rank, and negatives for each edge."""
    counts = [max(1, case.m // case.world) + rank % 3 for rank in range(case.world)]
    return counts, min(case.n, 1000)


def inputs(case):
    counts, negatives = shape(case)
    rows = counts[case.rank]
    pos = case.rand(rows, low=-2.0, high=2.0)
    # Each edge beats its negatives with a chance of its own, so that all places occur; some beat all or none.
    chance = case.rand(rows, 1, low=-0.1, high=1.1, dtype=torch.float32)
    above = case.rand(rows, negatives, dtype=torch.float32) < chance
    distance = case.rand(rows, negatives, low=GAP, high=2.5, dtype=torch.float32)
    neg = pos.unsqueeze(1).to(torch.float32) + torch.where(above, distance, -distance)
    return pos, neg.to(case.dtype)


def cost(case):
    counts, negatives = shape(case)
    own, every = counts[case.rank], sum(counts)
    # Edges are placed one by one: only the places have to be shared. The reference shares all the scores and sorts
    # all the rows on every rank.
    return Cost(
        flops=own * negatives,
        hbm=own * (negatives + 1) * case.itemsize + 8 * every,
        link=link.all_gather_uneven(8 * own, 8 * every, case.world),
    )


def counted_from_zero(*args):
    return solution(*args) - 1


def lowest_score_first(local_pos_scores, local_neg_scores, group=None):
    return solution(-local_pos_scores, -local_neg_scores, group)


def edges_in_reverse(local_pos_scores, local_neg_scores, group=None):
    return solution(local_pos_scores, local_neg_scores, group).flip(0)


MUTANTS = {
    "counted_from_zero": counted_from_zero,
    "lowest_score_first": lowest_score_first,
    "edges_in_reverse": edges_in_reverse,
}
