"""All-to-all of row blocks of unequal length.

Consecutive blocks of `input_split_sizes` rows go to ranks 0, 1, ...; the result holds the blocks received, in the order
of their sources, `output_split_sizes` rows each. Blocks may be empty, and the number of rows differs from rank to rank
and from call to call. Without output sizes the result has the shape of the input; without any sizes all blocks are
equal. A group of one rank returns its input.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def as_list(sizes: list[int] | torch.Tensor | None) -> list[int] | None:
    return sizes.tolist() if isinstance(sizes, torch.Tensor) else sizes


def solution(
    local_tensor: torch.Tensor,
    input_split_sizes: list[int] | torch.Tensor | None = None,
    output_split_sizes: list[int] | torch.Tensor | None = None,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    rows = local_tensor.contiguous()
    if dist.get_world_size(group) == 1:
        return rows
    sent, expected = as_list(input_split_sizes), as_list(output_split_sizes)
    received = torch.empty_like(rows) if expected is None else rows.new_empty(sum(expected), rows.shape[1])
    dist.all_to_all_single(received, rows, expected, sent, group=group)
    return received


PROBLEM = Problem(
    category="Expert Parallel",
    source="the all-to-all of MoE dispatch and combine (VeOmni)",
    sizes={"tiny": Size(32, 16), "paper": Size(1024, 1024), "large": Size(65536, 8192)},
    exact=True,
    requires={"each rank has a row for every rank": lambda case: case.m >= case.world},
    deviations={
        "sizes": (
            "any number of rows goes from one rank to another: `local_tensor`, `input_split_sizes` and "
            "`output_split_sizes` differ between ranks; published splits are all equal"
        ),
        "variants": "in later trials a rank sends nothing, a rank gets most rows, and no splits are passed",
    },
)

SILENT_TRIAL, HOT_TRIAL, EQUAL_TRIAL = 1, 2, 3


def inputs(case):
    lengths = block_lengths(case)
    sent, received = lengths[case.rank].tolist(), lengths[:, case.rank].tolist()
    rows = case.randn(sum(sent), case.n)
    return (rows,) if case.trial == EQUAL_TRIAL else (rows, sent, received)


def block_lengths(case):
    """Rows by source and destination: any number up to twice the average, M / world."""
    average = case.m // case.world
    lengths = case.shared.randint(0, 2 * average + 1, case.world, case.world)
    one = case.shared.integer(0, case.world)
    if case.trial == SILENT_TRIAL:
        lengths[one] = 0
        lengths[:, (one + 1) % case.world] = 0
    elif case.trial == HOT_TRIAL:
        lengths[:, one] += case.m
    elif case.trial == EQUAL_TRIAL:
        lengths[:] = average
    return lengths


def cost(case):
    # On average: the lengths are drawn anew for each call.
    moved = case.m // case.world * case.world * case.n * case.itemsize
    return Cost(flops=0, hbm=2 * moved, link=link.all_to_all(moved, case.world))


def received_blocks(*args):
    received = solution(*args)
    equal = received.shape[0] // dist.get_world_size()
    return list(received.split(args[2] if len(args) > 2 else equal))


def own_block_first(*args):
    blocks = received_blocks(*args)
    return torch.cat([blocks.pop(dist.get_rank()), *blocks])


def own_block_left_out(*args):
    blocks = received_blocks(*args)
    blocks[dist.get_rank()] = torch.zeros_like(blocks[dist.get_rank()])
    return torch.cat(blocks)


def blocks_in_reverse_order(*args):
    return torch.cat(received_blocks(*args)[::-1])


MUTANTS = {
    "own_block_first": own_block_first,
    "own_block_left_out": own_block_left_out,
    "blocks_in_reverse_order": blocks_in_reverse_order,
}
