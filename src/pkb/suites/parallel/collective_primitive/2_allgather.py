"""All-gather: every rank ends with all ranks' tensors, stacked in rank order along a new first dim."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(tensor: torch.Tensor) -> torch.Tensor:
    stacked = tensor.new_empty(dist.get_world_size(), *tensor.shape)
    dist.all_gather_into_tensor(stacked.flatten(0, 1), tensor.contiguous())
    return stacked


PROBLEM = Problem(
    category="Collective Primitive",
    source="the all-gather of FSDP, ZeRO-3 and Megatron-LM",
    sizes={"tiny": Size(16, 8), "paper": Size(1024, 1024), "large": Size(8192, 8192)},
    exact=True,
    deviations={
        "values": "normal values in place of the constant rank + 1, which every rank can work out for the others",
    },
)


def inputs(case):
    return (case.randn(case.m, case.n),)


def cost(case):
    own = case.m * case.n * case.itemsize
    return Cost(flops=0, hbm=own + case.world * own, link=link.all_gather(case.world * own, case.world))


def own_tensor_first(tensor):
    return solution(tensor).roll(-dist.get_rank(), dims=0)


def own_slot_left_empty(tensor):
    stacked = solution(tensor)
    stacked[dist.get_rank()] = 0
    return stacked


def rows_interleaved(tensor):
    stacked = solution(tensor)
    return stacked.transpose(0, 1).reshape(stacked.shape)


MUTANTS = {
    "own_tensor_first": own_tensor_first,
    "own_slot_left_empty": own_slot_left_empty,
    "rows_interleaved": rows_interleaved,
}
