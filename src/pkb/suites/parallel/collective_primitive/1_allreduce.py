"""Sum all-reduce: every rank ends with the sum of all ranks' tensors."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(tensor: torch.Tensor) -> torch.Tensor:
    total = tensor.clone()
    dist.all_reduce(total)
    return total


PROBLEM = Problem(
    category="Collective Primitive",
    source="the sum all-reduce of every data- and tensor-parallel stack (NCCL, DDP, Megatron-LM)",
    sizes={"tiny": Size(16, 8), "paper": Size(1024, 1024), "large": Size(8192, 8192)},
    exact_sums=True,
    deviations={
        "values": (
            "normal values in place of the constant rank + 1, whose sum is known without communication; once small "
            "whole numbers, whose sum is compared bit for bit"
        ),
    },
)


def inputs(case):
    return (case.randn(case.m, case.n),)


def cost(case):
    elements = case.m * case.n
    full = elements * case.itemsize
    return Cost(
        flops=elements * (case.world - 1) / case.world,
        hbm=2 * full,
        link=link.all_reduce(full, case.world),
    )


def own_tensor_added_twice(tensor):
    return solution(tensor) + tensor


def last_row_left_unreduced(tensor):
    return torch.cat((solution(tensor)[:-1], tensor[-1:]))


def answer_to_the_published_constants(tensor):
    world = dist.get_world_size()
    return torch.full_like(tensor, world * (world + 1) / 2)


MUTANTS = {
    "own_tensor_added_twice": own_tensor_added_twice,
    "last_row_left_unreduced": last_row_left_unreduced,
    "answer_to_the_published_constants": answer_to_the_published_constants,
}
