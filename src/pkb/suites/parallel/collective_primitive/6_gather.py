"""Gather: rank `dst` ends with all ranks' tensors, stacked in rank order along a new first dim.

The other ranks return their own tensor.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(tensor: torch.Tensor, dst: int = 0) -> torch.Tensor:
    tensor = tensor.contiguous()
    if dist.get_rank() != dst:
        dist.gather(tensor, None, dst)
        return tensor
    blocks = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.gather(tensor, blocks, dst)
    return torch.stack(blocks)


PROBLEM = Problem(
    category="Collective Primitive",
    source="NCCL and MPI gather; collecting results on one rank",
    sizes={"tiny": Size(16, 8), "paper": Size(1024, 1024), "large": Size(8192, 8192)},
    exact=True,
    deviations={
        "values": "normal values in place of the constant rank + 1",
        "scalars": "`dst` is passed, and is every rank in turn",
    },
)


def root(case):
    return case.trial % case.world


def inputs(case):
    return case.randn(case.m, case.n), root(case)


def cost(case):
    own = case.m * case.n * case.itemsize
    is_root = case.rank == root(case)
    written = case.world * own if is_root else 0
    return Cost(flops=0, hbm=own + written, link=link.gather(case.world * own, case.world, is_root))


def root_first(tensor, dst=0):
    result = solution(tensor, dst)
    return result.roll(-dst, dims=0) if dist.get_rank() == dst else result


def own_slot_of_the_root_left_empty(tensor, dst=0):
    result = solution(tensor, dst).clone()
    if dist.get_rank() == dst:
        result[dst] = 0
    return result


def zeros_off_the_root(tensor, dst=0):
    result = solution(tensor, dst)
    return result if dist.get_rank() == dst else torch.zeros_like(result)


MUTANTS = {
    "root_first": root_first,
    "own_slot_of_the_root_left_empty": own_slot_of_the_root_left_empty,
    "zeros_off_the_root": zeros_off_the_root,
}
