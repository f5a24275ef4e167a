"""Multi-hop neighbour sampling on a graph whose adjacency lists are spread over the ranks.

The neighbours of node v are known to rank node_to_rank[v] alone: they are its local_adj_col from local_adj_row_ptr[v]
up to local_adj_row_ptr[v + 1], and their places in that array are the edge ids. A hop takes the first `fanout` of them
(all, if it is negative or there are fewer), in order; nothing is random and `replace` has no effect.

Returns (node, row, col, edge). `node` lists the seeds, then every node reached, each in the order of its first
appearance. The edges follow hop after hop in the order of the nodes that were asked for: `row` is the place of the
neighbour in `node`, `col` that of the node it belongs to. A hop asks for what the hop before appended, that is
node[L:] with L the length of `node` before it; repeated seeds count in the first L but are dropped in that hop.
A hop that finds nothing leaves `node` as it is.

`fanouts` is the same on all ranks. A rank with nothing left to ask still has to answer the others.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def exchange(rows: torch.Tensor, sent: list[int], received: list[int], group) -> torch.Tensor:
    result = rows.new_empty(sum(received))
    dist.all_to_all_single(result, rows, received, sent, group=group)
    return result


def runs(starts: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Consecutive numbers from each start, as many as its length, one run after the other."""
    before = lengths.cumsum(0) - lengths
    count = torch.arange(int(lengths.sum()), device=lengths.device)
    return (starts - before).repeat_interleave(lengths) + count


def sample(
    src: torch.Tensor, fanout: int, row_ptr: torch.Tensor, col: torch.Tensor, node_to_rank: torch.Tensor, group
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Neighbours and edge ids of all of `src`, in its order, and how many each entry got."""
    owner = node_to_rank[src]
    asked = torch.bincount(owner, minlength=dist.get_world_size(group))
    wanted = torch.empty_like(asked)
    dist.all_to_all_single(wanted, asked, group=group)
    asked, wanted = asked.tolist(), wanted.tolist()
    by_owner = torch.argsort(owner, stable=True)
    nodes = exchange(src[by_owner], asked, wanted, group)

    served = row_ptr[nodes + 1] - row_ptr[nodes]
    if fanout >= 0:
        served = served.clamp(max=fanout)
    edge = runs(row_ptr[nodes], served)

    got = exchange(served, wanted, asked, group)
    outgoing = torch.stack([part.sum() for part in served.split(wanted)]).tolist()
    incoming = torch.stack([part.sum() for part in got.split(asked)]).tolist()
    neighbour = exchange(col[edge], outgoing, incoming, group)
    edge = exchange(edge, outgoing, incoming, group)

    back = torch.argsort(by_owner)
    in_order = runs((got.cumsum(0) - got)[back], got[back])
    return neighbour[in_order], edge[in_order], got[back]


def first_appearances(ids: torch.Tensor) -> torch.Tensor:
    distinct, label = torch.unique(ids, return_inverse=True)
    place = torch.arange(ids.numel(), device=ids.device)
    first = torch.full_like(distinct, ids.numel()).scatter_reduce_(0, label, place, "amin")
    return ids[first.sort().values]


def places(ids: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
    ordered, place = node.sort()
    return place[torch.searchsorted(ordered, ids)]


def solution(
    seed_nodes: torch.Tensor,
    fanouts: list[int],
    local_adj_row_ptr: torch.Tensor,
    local_adj_col: torch.Tensor,
    node_to_rank: torch.Tensor,
    group: dist.ProcessGroup | None = None,
    replace: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    node = src = seed_nodes.clone()
    hops = []
    for fanout in fanouts:
        neighbour, edge, got = sample(src, fanout, local_adj_row_ptr, local_adj_col, node_to_rank, group)
        hops.append((neighbour, src.repeat_interleave(got), edge))
        merged = first_appearances(torch.cat((node, neighbour))) if neighbour.numel() else node
        node, src = merged, merged[node.numel() :]
    neighbour, asked_for, edge = (torch.cat(parts) for parts in zip(*hops, strict=True))
    return node, places(neighbour, node), places(asked_for, node), edge


PROBLEM = Problem(
    category="Graph Parallel",
    source="distributed neighbour sampler of PyTorch Geometric (sample, merge, relabel)",
    sizes={"tiny": Size(60, 6), "paper": Size(10000, 512), "large": Size(100_000_000, 8192)},
    exact=True,
    requires={"the N seeds of a rank are distinct nodes out of M": lambda case: case.n <= case.m},
    deviations={
        "sizes": (
            "a node has 0 to 30 neighbours, not 16, and a rank's arrays (`local_adj_col`) hold only those of its own "
            "nodes, not the whole graph"
        ),
        "values": (
            "neighbours, owners and seeds are random; the published graph is a ring known in closed form, so that no "
            "rank has to ask another"
        ),
        "variants": (
            "later trials pose other `fanouts`, -1 too, seeds that repeat, a rank that owns most nodes or none, and a "
            "rank whose seeds have no neighbours"
        ),
        "result": (
            "a rank with nothing left to ask goes on taking part; the published code leaves the exchange, and can hang"
        ),
    },
)

MAX_DEGREE = 30


def hop_sizes(case):
    return {1: [3, 2, 2], 2: [-1, 2]}.get(case.trial, [10, 5])


def owners(case):
    """Any rank for each node; in two trials the last rank owns most of the nodes, or none."""
    last = case.world - 1
    owner = case.shared.randint(0, case.world, case.m)
    if case.trial == 1:
        return torch.where(case.shared.rand(case.m, dtype=torch.float32) < 0.8, last, owner)
    return torch.where(owner == last, 0, owner) if case.trial == 2 else owner


def inputs(case):
    owner = owners(case)
    # One node in ten has no neighbours. What other ranks own looks empty here.
    isolated = torch.arange(case.m, device=case.device) % 10 == 3
    degree = case.randint(0, MAX_DEGREE + 1, case.m)
    row_ptr = F.pad(torch.where(isolated | (owner != case.rank), 0, degree).cumsum(0), (1, 0))
    col = case.randint(0, case.m, int(row_ptr[-1]))

    seeds = case.randperm(case.m)
    if case.trial == 3:
        seeds = seeds[case.randint(0, max(1, case.n // 2), case.n)]
    if case.trial == 4 and case.rank == 0:
        seeds = seeds[isolated[seeds]]
    return seeds[: case.n].clone(), hop_sizes(case), row_ptr, col, owner


def cost(case):
    """What uniform neighbours and owners lead to on average."""
    nodes = frontier = case.n
    asked = edges = 0.0
    for fanout in hop_sizes(case):
        most = fanout if fanout >= 0 else MAX_DEGREE
        found = frontier * 0.9 * sum(min(most, degree) for degree in range(MAX_DEGREE + 1)) / (MAX_DEGREE + 1)
        asked, edges = asked + frontier, edges + found
        frontier = (case.m - nodes) * (1 - math.exp(-found / case.m))
        nodes += frontier
    # A one-sided read of two pointers per node and of the neighbours needs no requests, counts or edge ids.
    remote = (16 * asked + 8 * edges) * (case.world - 1) / case.world
    return Cost(flops=0, hbm=24 * asked + 8 * edges + 8 * nodes + 24 * edges, link=Link(remote, remote))


def own_lists_only(seed_nodes, fanouts, local_adj_row_ptr, local_adj_col, node_to_rank, group=None, replace=False):
    here = torch.full_like(node_to_rank, dist.get_rank(group))
    return solution(seed_nodes, fanouts, local_adj_row_ptr, local_adj_col, here, group)


def nodes_sorted_by_id(seed_nodes, *rest):
    node, row, col, edge = solution(seed_nodes, *rest)
    ordered, old_place = node.sort()
    new_place = torch.argsort(old_place)
    return ordered, new_place[row], new_place[col], edge


def repeated_seeds_dropped_at_once(seed_nodes, *rest):
    return solution(first_appearances(seed_nodes), *rest)


def last_hop_skipped(seed_nodes, fanouts, *rest):
    return solution(seed_nodes, fanouts[:-1], *rest)


MUTANTS = {
    "own_lists_only": own_lists_only,
    "nodes_sorted_by_id": nodes_sorted_by_id,
    "repeated_seeds_dropped_at_once": repeated_seeds_dropped_at_once,
    "last_hop_skipped": last_hop_skipped,
}
