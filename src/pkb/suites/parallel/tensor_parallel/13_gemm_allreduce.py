"""Row-parallel linear layer: each rank multiplies its slice of the inner dim, the products are summed."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(A_local: torch.Tensor, B_local: torch.Tensor) -> torch.Tensor:
    C = A_local @ B_local
    dist.all_reduce(C)
    return C


PROBLEM = Problem(
    category="Tensor Parallel",
    source="row-parallel linear layer (Megatron-LM)",
    sizes={"tiny": Size(32, 24), "paper": Size(1024, 1024), "large": Size(16384, 8192)},
    deviations={
        "values": (
            "`B_local` is scaled by K^-1/2, so that results are of order 1 and an error can be told from rounding"
        ),
    },
)

K = 512


def inputs(case):
    return case.randn(case.m, K), case.randn(K, case.n, scale=K**-0.5)


def cost(case):
    m, n, s = case.m, case.n, case.itemsize
    return Cost(
        flops=2 * m * n * K + m * n * (case.world - 1) / case.world,
        hbm=(m * K + K * n + m * n) * s,
        link=link.all_reduce(m * n * s, case.world),
    )


def product_of_sums(A_local, B_local):
    A, B = A_local.clone(), B_local.clone()
    dist.all_reduce(A)
    dist.all_reduce(B)
    return A @ B


def own_product_added_twice(A_local, B_local):
    return solution(A_local, B_local) + A_local @ B_local


def right_factor_assumed_shared(A_local, B_local):
    B_local = B_local.clone()
    dist.broadcast(B_local, 0)
    return solution(A_local, B_local)


MUTANTS = {
    "product_of_sums": product_of_sums,
    "own_product_added_twice": own_product_added_twice,
    "right_factor_assumed_shared": right_factor_assumed_shared,
}
