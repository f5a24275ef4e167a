"""Broadcast: every rank ends with a copy of the tensor that rank `src` holds."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    received = tensor.clone()
    dist.broadcast(received, src)
    return received


PROBLEM = Problem(
    category="Collective Primitive",
    source="parameter broadcast at the start of DDP; rank-0 loading in Megatron-LM and DeepSpeed",
    sizes={"tiny": Size(16, 8), "paper": Size(1024, 1024), "large": Size(8192, 8192)},
    exact=True,
    deviations={
        "values": "normal values in place of the constant rank + 1",
        "scalars": "`src` is every rank in turn; the published root is rank 0, which a kernel may take for granted",
    },
)


def root(case):
    return case.trial % case.world


def inputs(case):
    return case.randn(case.m, case.n), root(case)


def cost(case):
    full = case.m * case.n * case.itemsize
    is_root = case.rank == root(case)
    return Cost(flops=0, hbm=full * (2 if is_root else 1), link=link.broadcast(full, case.world, is_root))


def root_is_always_rank_0(tensor, src=0):
    return solution(tensor)


def last_link_of_the_chain_missing(tensor, src=0):
    received = solution(tensor, src)
    is_last = (dist.get_rank() + 1) % dist.get_world_size() == src
    return tensor.clone() if is_last else received


def last_row_not_sent(tensor, src=0):
    return torch.cat((solution(tensor, src)[:-1], tensor[-1:]))


MUTANTS = {
    "root_is_always_rank_0": root_is_always_rank_0,
    "last_link_of_the_chain_missing": last_link_of_the_chain_missing,
    "last_row_not_sent": last_row_not_sent,
}
