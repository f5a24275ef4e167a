"""Rows of a feature table that is spread over the ranks in blocks are fetched by id and projected.

Rank r owns the ids from r * S up to (r + 1) * S, S = ceil(num_total_nodes / W); the last block may be shorter. The
result has one row per id in the order asked, repetitions included. Every rank projects with its own matrix, and asks
for a number of rows of its own.
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def exchange(rows: torch.Tensor, sent: list[int], received: list[int], group) -> torch.Tensor:
    result = rows.new_empty(sum(received), *rows.shape[1:])
    dist.all_to_all_single(result, rows, received, sent, group=group)
    return result


def solution(
    local_embedding_shard: torch.Tensor,
    input_node_ids: torch.Tensor,
    proj_matrix: torch.Tensor,
    num_total_nodes: int,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    world, rank = dist.get_world_size(group), dist.get_rank(group)
    block = -(-num_total_nodes // world)
    owner = (input_node_ids // block).clamp(max=world - 1)
    asked = torch.bincount(owner, minlength=world)
    wanted = torch.empty_like(asked)
    dist.all_to_all_single(wanted, asked, group=group)
    asked, wanted = asked.tolist(), wanted.tolist()

    by_owner = torch.argsort(owner, stable=True)
    ids = exchange(input_node_ids[by_owner], asked, wanted, group)
    fetched = exchange(local_embedding_shard[ids - rank * block], wanted, asked, group)
    embeddings = torch.empty_like(fetched)
    embeddings[by_owner] = fetched
    return embeddings @ proj_matrix


PROBLEM = Problem(
    category="Graph Parallel",
    source="sparse pull of node features in DGL with the input projection of GraphStorm",
    sizes={"tiny": Size(24, 16), "paper": Size(20000, 256), "large": Size(200_000, 256)},
    requires={"every rank asks for at least one of about M rows": lambda case: case.m >= case.world},
    deviations={
        "sizes": (
            "a table of 200 M - 1 rows, 4 million at size paper, not 111 million, which would take 14 to 57 GB on "
            "each GPU; the last rank's `local_embedding_shard` is shorter, and rank r asks for M - r rows "
            "(`input_node_ids`)"
        ),
        "values": (
            "ids are random and repeat, where the published ones are distinct and evenly spread; `proj_matrix` is "
            "scaled by its fan-in"
        ),
        "variants": "in later trials one owner is asked for most rows, for none, and every rank for its own",
    },
)


def shape(case):
    """Rows of the table, rows in a rank's block, rows that this rank asks for."""
    # Smaller than the published table of 111 million, so that two worlds fit on a GPU. The last block is short.
    nodes = 200 * case.m - 1
    return nodes, -(-nodes // case.world), case.m - case.rank


def inputs(case):
    nodes, block, count = shape(case)
    last = case.world - 1
    ids = case.randint(0, nodes, count)
    match case.trial:
        case 1:
            ids = torch.where(case.rand(count, dtype=torch.float32) < 0.8, nodes - 1 - ids // case.world, ids)
        case 2:
            ids = torch.where(ids // block == last, ids // case.world, ids)
        case 3:
            ids = (case.rank * block + ids % block).clamp(max=nodes - 1)
    # Drawing once more from what was drawn repeats some.
    ids = ids[case.randint(0, count, count)]
    own_rows = min(block, nodes - case.rank * block)
    shard = case.randn(own_rows, case.n)
    return shard, ids, case.randn(case.n, case.n, scale=case.n**-0.5), nodes


def cost(case):
    _, _, count = shape(case)
    width, row = case.n, case.n * case.itemsize
    # A row asked for twice crosses once; the draw above leaves 1 - 1/e distinct. One-sided reads send no ids.
    distinct = count * (1 - math.exp(-1))
    remote = distinct * row * (case.world - 1) / case.world
    return Cost(
        flops=2 * distinct * width * width,
        hbm=distinct * row + 8 * count + (width + count) * row,
        link=Link(remote, remote),
    )


def rows_left_in_the_order_of_owners(local_embedding_shard, input_node_ids, *rest):
    return solution(local_embedding_shard, input_node_ids.sort().values, *rest)


def projected_by_the_owner(local_embedding_shard, input_node_ids, proj_matrix, *rest):
    same = torch.eye(proj_matrix.shape[0], dtype=proj_matrix.dtype, device=proj_matrix.device)
    return solution(local_embedding_shard @ proj_matrix, input_node_ids, same, *rest)


def own_block_for_all_ids(local_embedding_shard, input_node_ids, proj_matrix, num_total_nodes, group=None):
    return local_embedding_shard[input_node_ids % local_embedding_shard.shape[0]] @ proj_matrix


MUTANTS = {
    "rows_left_in_the_order_of_owners": rows_left_in_the_order_of_owners,
    "projected_by_the_owner": projected_by_the_owner,
    "own_block_for_all_ids": own_block_for_all_ids,
}
