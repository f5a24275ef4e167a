"""Lookup in an embedding table whose rows are spread over the ranks in equal blocks.

The rows come back grouped by the rank that owns them, in the order of the indices inside each group:
they are not put back in the order of `indices`.
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def solution(indices: torch.Tensor, local_shard: torch.Tensor) -> torch.Tensor:
    world, rank = dist.get_world_size(), dist.get_rank()
    rows, width = local_shard.shape

    owner = indices // rows
    by_owner = indices[torch.argsort(owner, stable=True)]
    sent = torch.bincount(owner, minlength=world)
    asked = torch.empty_like(sent)
    dist.all_to_all_single(asked, sent)
    sent_list, asked_list = sent.tolist(), asked.tolist()

    wanted = indices.new_empty(sum(asked_list))
    dist.all_to_all_single(wanted, by_owner, asked_list, sent_list)
    served = local_shard[(wanted - rank * rows).clamp(0, rows - 1)]

    found = local_shard.new_empty(indices.numel(), width)
    dist.all_to_all_single(found, served, sent_list, asked_list)
    return found


PROBLEM = Problem(
    category="Tensor Parallel",
    source="row-wise sharded embedding tables (torchrec, DLRM)",
    sizes={"tiny": Size(64, 16), "paper": Size(1024, 1024), "large": Size(262144, 1024)},
    exact=True,
    deviations={
        "sizes": "rank r asks for M - r rows (`indices`), not M: counts differ between ranks",
        "variants": (
            "in later trials one owner is asked for most rows, one owner for none, and every rank for its own rows only"
        ),
    },
)


def inputs(case):
    table_rows = case.world * case.m
    hot = case.trial % case.world
    # Unequal counts, and by turns: any owner, one hot owner, an owner nobody asks, own rows only.
    count = case.m - case.rank
    anywhere = case.randint(0, table_rows, count)
    match case.trial % 4:
        case 1:
            anywhere = torch.where(
                case.rand(count, dtype=torch.float32) < 0.8, hot * case.m + anywhere % case.m, anywhere
            )
        case 2:
            spared = (anywhere + case.m) % table_rows
            anywhere = torch.where(anywhere // case.m == hot, spared, anywhere)
        case 3:
            anywhere = case.rank * case.m + anywhere % case.m
    return anywhere, case.randn(case.m, case.n)


def cost(case):
    row = case.n * case.itemsize
    # Each distinct remote row must cross once; with one-sided reads no index has to. Uniform indices.
    remote = (case.world - 1) * case.m * (1 - math.exp(-1 / case.world))
    return Cost(
        flops=0,
        hbm=8 * case.m + 2 * case.m * row,
        link=Link(egress=remote * row, ingress=remote * row),
    )


def rows_in_order_of_indices(indices, local_shard):
    order = torch.argsort(indices // local_shard.shape[0], stable=True)
    found = solution(indices, local_shard)
    return torch.empty_like(found).index_copy(0, order, found)


def order_within_owners_reversed(indices, local_shard):
    return solution(indices.flip(0), local_shard)


def sorted_within_owners(indices, local_shard):
    return solution(indices.sort().values, local_shard)


MUTANTS = {
    "rows_in_order_of_indices": rows_in_order_of_indices,
    "order_within_owners_reversed": order_within_owners_reversed,
    "sorted_within_owners": sorted_within_owners,
}
