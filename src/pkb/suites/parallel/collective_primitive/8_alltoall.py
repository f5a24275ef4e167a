"""All-to-all: block d of every rank goes to rank d, which lays the blocks out in the order of their sources."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(tensor: torch.Tensor) -> torch.Tensor:
    received = torch.empty_like(tensor)
    dist.all_to_all_single(received, tensor)
    return received


PROBLEM = Problem(
    category="Collective Primitive",
    source="the even all-to-all of MoE dispatch and DeepSpeed-Ulysses",
    sizes={"tiny": Size(16, 8), "paper": Size(1024, 1024), "large": Size(8192, 8192)},
    exact=True,
    deviations={
        "values": (
            "normal values in place of 10 times the rank plus the slice, which every rank can work out for the others"
        ),
    },
)


def inputs(case):
    return (case.randn(case.world, case.m, case.n),)


def cost(case):
    full = case.world * case.m * case.n * case.itemsize
    return Cost(flops=0, hbm=2 * full, link=link.all_to_all(full, case.world))


def own_block_left_out(tensor):
    received = solution(tensor)
    received[dist.get_rank()] = 0
    return received


def blocks_in_order_of_arrival(tensor):
    """By distance of the source: the rank itself, the one before it, ..."""
    return solution(tensor).flip(0).roll(dist.get_rank() + 1, dims=0)


def blocks_stay_where_they_are(tensor):
    return tensor.clone()


MUTANTS = {
    "own_block_left_out": own_block_left_out,
    "blocks_in_order_of_arrival": blocks_in_order_of_arrival,
    "blocks_stay_where_they_are": blocks_stay_where_they_are,
}
