"""Gradients of exchanged feature rows go back to the ranks that sent the rows, and are summed by id there.

Peers are counted from the own rank: entry c of either list of counts stands for rank (rank + c) mod W. grad_output is
cut into pieces of counts_sent[c] rows, and piece c goes to that peer; counts_received[c] rows come from it. Row j of
what came, in the order of c, is added to row seed_inverse_ids[j] of the result; rows that no id names are zero.

The gradients are float32 in a run of any dtype. Of a narrower dtype they would be summed in float32 and rounded once.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link
from pkb.suites.parallel._shared.gnn_exchange import count_rows_by_peer, row_counts


def rolled(items: list, places: int) -> list:
    """Entry i moves to place (i + places) mod the length."""
    return [items[(i - places) % len(items)] for i in range(len(items))]


def returned(
    grad_output: torch.Tensor, counts_sent: list[int], counts_received: list[int], group: dist.ProcessGroup | None
) -> torch.Tensor:
    """The gradients of the rows that this rank had sent, nearest peer first."""
    rank = dist.get_rank(group)
    outgoing = torch.cat(rolled(grad_output.split(counts_sent), rank))
    incoming = outgoing.new_empty(sum(counts_received), outgoing.shape[1])
    sizes = rolled(counts_received, rank)
    dist.all_to_all_single(incoming, outgoing, sizes, rolled(counts_sent, rank), group=group)
    return torch.cat(rolled(incoming.split(sizes), -rank))


def solution(
    grad_output: torch.Tensor,
    seed_inverse_ids: torch.Tensor,
    seed_size: int,
    counts_sent: list[int],
    counts_received: list[int],
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rows = returned(grad_output, counts_sent, counts_received, group).to(torch.float32)
    sums = rows.new_zeros(seed_size, rows.shape[1])
    return sums.index_add_(0, seed_inverse_ids, rows).to(grad_output.dtype)


PROBLEM = Problem(
    category="Graph Parallel",
    source="cooperative mini-batching of DGL GraphBolt, backward of the feature exchange",
    sizes={"tiny": Size(24, 48), "paper": Size(1024, 1024), "large": Size(1_000_000, 8192)},
    deviations={
        "sizes": (
            "any number of rows goes from one rank to another (`counts_sent`, `counts_received`, `grad_output`, "
            "`seed_inverse_ids`); published counts are all equal"
        ),
        "values": "a few rows are named again and again and a quarter never, so that sums and zeros both show",
    },
)


def shape(case):
    """Rows per pair of ranks on average, rows of the result, and width."""
    share = max(1, case.m // case.world)
    return share, max(1, share * case.world // 2), max(1, case.n // 8)


def gradient_counts(case, share):
    """Rows whose gradients each rank (row) sends back to each (column), known to all."""
    counts, world = row_counts(case, share), case.world
    # Every rank gets something back, at least from the next one round the ring.
    ring = torch.arange(world, device=case.device)
    counts[ring, (ring - 1) % world] += share
    return counts


def inputs(case):
    share, seed_size, width = shape(case)
    sent, received = count_rows_by_peer(case, gradient_counts(case, share))
    # A few ids are named again and again, a quarter of them never.
    rows = sum(received)
    often = case.rand(rows, dtype=torch.float32) < 0.4
    ids = torch.where(often, case.randint(0, -(-seed_size // 8), rows), case.randint(0, -(-3 * seed_size // 4), rows))
    return case.randn(sum(sent), width, dtype=torch.float32), ids, seed_size, sent, received


def cost(case):
    share, seed_size, width = shape(case)
    # Average counts, and once more as many from the next rank. Rows for the same id are not summed before they are
    # sent: the sender does not know the ids.
    total, row = share * (case.world + 1), 4 * width
    remote = case.world * share * row if case.world > 1 else 0
    return Cost(
        # The first row of an id is not added to anything; three quarters of the ids have one.
        flops=(total - 3 * seed_size / 4) * width,
        hbm=total * (row + 8) + seed_size * row,
        link=Link(remote, remote),
    )


def last_gradient_kept(grad_output, seed_inverse_ids, seed_size, counts_sent, counts_received, group=None):
    rows = returned(grad_output, counts_sent, counts_received, group)
    kept = rows.new_zeros(seed_size, rows.shape[1])
    kept[seed_inverse_ids] = rows
    return kept


def rows_in_rank_order(grad_output, seed_inverse_ids, seed_size, counts_sent, counts_received, group=None):
    blocks = seed_inverse_ids.split(counts_received)
    ids = torch.cat(rolled(blocks, dist.get_rank(group)))
    return solution(grad_output, ids, seed_size, counts_sent, counts_received, group)


def own_rows_only(grad_output, seed_inverse_ids, seed_size, counts_sent, counts_received, group=None):
    rows = returned(grad_output, counts_sent, counts_received, group)
    rows[counts_received[0] :] = 0
    return rows.new_zeros(seed_size, rows.shape[1]).index_add_(0, seed_inverse_ids, rows)


MUTANTS = {
    "last_gradient_kept": last_gradient_kept,
    "rows_in_rank_order": rows_in_rank_order,
    "own_rows_only": own_rows_only,
}
