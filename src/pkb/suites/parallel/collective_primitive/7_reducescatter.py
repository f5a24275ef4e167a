"""Reduce-scatter: rank i ends with block i, along the first dim, of the sum of all ranks' tensors."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(tensor: torch.Tensor) -> torch.Tensor:
    rows = tensor.shape[0] // dist.get_world_size()
    block = tensor.new_empty(rows, *tensor.shape[1:])
    dist.reduce_scatter_tensor(block, tensor.contiguous())
    return block


PROBLEM = Problem(
    category="Collective Primitive",
    source="gradient reduce-scatter of FSDP and ZeRO; Megatron-LM sequence parallelism",
    sizes={"tiny": Size(16, 8), "paper": Size(1024, 1024), "large": Size(8192, 8192)},
    exact_sums=True,
    deviations={
        "values": (
            "normal values in place of the constant rank + 1, under which every block of rows has the same result; "
            "once small whole numbers"
        ),
    },
)


def inputs(case):
    return (case.randn(case.world * case.m, case.n),)


def cost(case):
    elements = case.m * case.n
    full = case.world * elements * case.itemsize
    return Cost(
        flops=(case.world - 1) * elements,
        hbm=full + elements * case.itemsize,
        link=link.reduce_scatter(full, case.world),
    )


def block_of_the_next_rank(tensor):
    rows = tensor.shape[0] // dist.get_world_size()
    return solution(tensor.roll(-rows, dims=0))


def rows_dealt_out_in_turn(tensor):
    dealt = tensor.unflatten(0, (-1, dist.get_world_size())).transpose(0, 1)
    return solution(dealt.flatten(0, 1))


def own_block_not_added(tensor):
    return solution(tensor) - tensor.chunk(dist.get_world_size())[dist.get_rank()]


MUTANTS = {
    "block_of_the_next_rank": block_of_the_next_rank,
    "rows_dealt_out_in_turn": rows_dealt_out_in_turn,
    "own_block_not_added": own_block_not_added,
}
