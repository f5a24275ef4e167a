"""Rooted sum: rank `dst` ends with the sum of all ranks' tensors.

The other ranks return a tensor of the same shape and dtype, whose values have no meaning.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(tensor: torch.Tensor, dst: int = 0) -> torch.Tensor:
    total = tensor.clone()
    dist.reduce(total, dst)
    return total


PROBLEM = Problem(
    category="Collective Primitive",
    source="NCCL reduce; gradient reduction to the owner rank in ZeRO-2",
    sizes={"tiny": Size(16, 8), "paper": Size(1024, 1024), "large": Size(8192, 8192)},
    exact_sums=True,
    deviations={
        "values": "normal values in place of the constant rank + 1; once small whole numbers",
        "scalars": "`dst` is every rank in turn; the published root is rank 0, which a kernel may take for granted",
        "result": (
            "only what rank `dst` returns is compared: what the other ranks' buffers hold after a reduce depends on "
            "the library"
        ),
    },
)


def root(case):
    return case.trial % case.world


def inputs(case):
    return case.randn(case.m, case.n), root(case)


def select_outputs(case, output):
    return output if case.rank == root(case) else None


def cost(case):
    elements = case.m * case.n
    full = elements * case.itemsize
    is_root = case.rank == root(case)
    return Cost(
        # Every sum but the root's own may be done by any rank on the way.
        flops=elements * (case.world - 1) / case.world,
        hbm=full * (2 if is_root else 1),
        link=link.reduce(full, case.world, is_root),
    )


def root_is_always_rank_0(tensor, dst=0):
    return solution(tensor)


def root_added_twice(tensor, dst=0):
    return solution(tensor, dst) + tensor


def last_row_left_unreduced(tensor, dst=0):
    return torch.cat((solution(tensor, dst)[:-1], tensor[-1:]))


MUTANTS = {
    "root_is_always_rank_0": root_is_always_rank_0,
    "root_added_twice": root_added_twice,
    "last_row_left_unreduced": last_row_left_unreduced,
}
