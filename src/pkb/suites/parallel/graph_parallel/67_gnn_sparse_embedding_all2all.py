"""Sparse rows (index and value) are sent to the ranks that own their indices.

Index i belongs to rank i mod W. The result lists, for source ranks 0 to W - 1 in turn, the rows that the source had
for this rank, in the order in which it held them. Indices stay global; nothing is summed or left out. `num_nodes`
bounds the indices and is not needed. One rank alone returns its arguments.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link


def exchange(rows: torch.Tensor, sent: list[int], received: list[int], group) -> torch.Tensor:
    result = rows.new_empty(sum(received), *rows.shape[1:])
    dist.all_to_all_single(result, rows, received, sent, group=group)
    return result


def solution(
    idx: torch.Tensor, value: torch.Tensor, num_nodes: int, group: dist.ProcessGroup | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    world = dist.get_world_size(group)
    if world == 1:
        return idx, value
    owner = idx % world
    sent = torch.bincount(owner, minlength=world)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    sent, received = sent.tolist(), received.tolist()
    by_owner = torch.argsort(owner, stable=True)
    return exchange(idx[by_owner], sent, received, group), exchange(value[by_owner], sent, received, group)


PROBLEM = Problem(
    category="Graph Parallel",
    source="sparse push of embedding gradients in DGL (remainder partition over NCCL)",
    sizes={"tiny": Size(40, 64), "paper": Size(1024, 1024), "large": Size(4_000_000, 2048)},
    exact=True,
    deviations={
        "sizes": (
            "M - 3r rows on rank r (`idx`, `value`) of 100 M nodes, not 1024 of 100 000; one rank has none in one trial"
        ),
        "values": "rows repeat",
        "variants": "in later trials one rank owns most rows or none, and `value` has three dims",
    },
)


def shape(case):
    """Rows of this rank, global rows, and width."""
    # Rank 1 has nothing to send in one trial; counts differ in all.
    rows = 0 if case.trial == 4 and case.rank == 1 else max(1, case.m - 3 * case.rank)
    num_nodes = -(-100 * case.m // case.world) * case.world
    return rows, num_nodes, max(2, case.n // 8)


def inputs(case):
    rows, num_nodes, width = shape(case)
    last = case.world - 1
    idx = case.randint(0, num_nodes, rows)
    # Drawing once more from what was drawn repeats some.
    idx = idx[case.randint(0, max(1, rows), rows)]
    owned_by_last = idx - idx % case.world + last
    match case.trial:
        case 1:
            idx = torch.where(case.rand(rows, dtype=torch.float32) < 0.8, owned_by_last, idx)
        case 2 if last:
            idx = torch.where(idx == owned_by_last, idx - 1, idx)
    value = case.randn(rows, width // 2, 2) if case.trial == 3 else case.randn(rows, width)
    return idx, value, num_nodes


def cost(case):
    rows, _, width = shape(case)
    row = width * case.itemsize + 8
    remote = rows * row * (case.world - 1) / case.world
    # One rank alone moves nothing.
    moved = 2 * rows * row if case.world > 1 else 0
    return Cost(flops=0, hbm=moved, link=Link(remote, remote))


def values_left_unsorted(idx, value, num_nodes, group=None):
    by_owner = torch.argsort(idx % dist.get_world_size(group), stable=True)
    return solution(idx, value[torch.argsort(by_owner)], num_nodes, group)


def order_within_a_source_reversed(idx, value, num_nodes, group=None):
    return solution(idx.flip(0), value.flip(0), num_nodes, group)


def blocks_of_indices_to_owners(idx, value, num_nodes, group=None):
    world = dist.get_world_size(group)
    block = num_nodes // world
    renamed, value = solution(idx % block * world + idx // block, value, num_nodes, group)
    return renamed % world * block + renamed // world, value


MUTANTS = {
    "values_left_unsorted": values_left_unsorted,
    "order_within_a_source_reversed": order_within_a_source_reversed,
    "blocks_of_indices_to_owners": blocks_of_indices_to_owners,
}
