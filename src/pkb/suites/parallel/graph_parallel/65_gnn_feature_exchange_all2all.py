"""Feature rows are picked by id and sent to the ranks that asked for them.

Peers are counted from the own rank: entry c of either list of counts stands for rank (rank + c) mod W. The picked rows
are cut into pieces of counts_received[c] rows, and piece c goes to that peer; the result has blocks of counts_sent[c]
rows, and block c is what came from that peer. The names are those of the requests for ids that went before: this rank
sent requests for sum(counts_sent) rows and received requests for sum(counts_received).
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link
from pkb.suites.parallel._shared.gnn_exchange import count_rows_by_peer, row_counts


def rolled(items: list, places: int) -> list:
    """Entry i moves to place (i + places) mod the length."""
    return [items[(i - places) % len(items)] for i in range(len(items))]


def solution(
    local_features: torch.Tensor,
    seed_inverse_ids: torch.Tensor,
    counts_sent: list[int],
    counts_received: list[int],
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rank = dist.get_rank(group)
    pieces = local_features[seed_inverse_ids].split(counts_received)
    outgoing = torch.cat(rolled(pieces, rank))
    incoming = outgoing.new_empty(sum(counts_sent), *outgoing.shape[1:])
    sizes = rolled(counts_sent, rank)
    dist.all_to_all_single(incoming, outgoing, sizes, rolled(counts_received, rank), group=group)
    return torch.cat(rolled(incoming.split(sizes), -rank))


PROBLEM = Problem(
    category="Graph Parallel",
    source="cooperative mini-batching of DGL GraphBolt, forward feature exchange",
    sizes={"tiny": Size(24, 48), "paper": Size(1024, 1024), "large": Size(1_000_000, 8192)},
    exact=True,
    deviations={
        "sizes": (
            "any number of rows goes from one rank to another (`counts_sent`, `counts_received`, `seed_inverse_ids`), "
            "and in some trials none; published counts are all equal"
        ),
        "variants": "`local_features` has three dims in one trial",
    },
)


def shape(case):
    """Rows per pair of ranks on average, rows to pick from, and width."""
    share = max(1, case.m // case.world)
    return share, max(1, 3 * share * case.world // 4), max(2, case.n // 8)


def inputs(case):
    share, rows, width = shape(case)
    served, asked = count_rows_by_peer(case, row_counts(case, share))
    features = case.randn(rows, width // 2, 2) if case.trial == 4 else case.randn(rows, width)
    return features, case.randint(0, rows, sum(served)), asked, served


def cost(case):
    share, rows, width = shape(case)
    row = width * case.itemsize
    total = share * case.world
    # A row that a peer asks for several times has to cross only once. Average counts, uniform ids.
    remote = (case.world - 1) * distinct(share, rows) * row
    return Cost(flops=0, hbm=distinct(total, rows) * row + 8 * total + total * row, link=Link(remote, remote))


def distinct(picks, rows):
    """How many different rows so many uniform picks hit on average."""
    return rows * (1 - math.exp(-picks / rows))


def blocks_in_rank_order(local_features, seed_inverse_ids, counts_sent, counts_received, group=None):
    blocks = solution(local_features, seed_inverse_ids, counts_sent, counts_received, group).split(counts_sent)
    return torch.cat(rolled(blocks, dist.get_rank(group)))


def rows_taken_in_order(local_features, seed_inverse_ids, *rest):
    count = torch.arange(seed_inverse_ids.numel(), device=seed_inverse_ids.device)
    return solution(local_features, count % local_features.shape[0], *rest)


def pieces_in_reverse(local_features, seed_inverse_ids, *rest):
    return solution(local_features, seed_inverse_ids.flip(0), *rest)


MUTANTS = {
    "blocks_in_rank_order": blocks_in_rank_order,
    "rows_taken_in_order": rows_taken_in_order,
    "pieces_in_reverse": pieces_in_reverse,
}
