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
