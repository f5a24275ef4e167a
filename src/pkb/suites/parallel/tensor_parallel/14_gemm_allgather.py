"""Column-parallel linear layer with gathered output: the ranks' products stand side by side as columns.

Every rank multiplies its own A with its own B.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    C_local = A @ B
    columns = [torch.empty_like(C_local) for _ in range(dist.get_world_size())]
    dist.all_gather(columns, C_local)
    return torch.cat(columns, dim=1)


PROBLEM = Problem(
    category="Tensor Parallel",
    source="column-parallel linear layer with gather_output (Megatron-LM)",
    sizes={"tiny": Size(24, 32), "paper": Size(1024, 1024), "large": Size(16384, 16384)},
    requires={"each rank needs at least one of the N columns": lambda case: case.n >= case.world},
    deviations={
        "values": "`B` is scaled by K^-1/2, so that results are of order 1 and an error can be told from rounding",
    },
)

K = 512


def inputs(case):
    return case.randn(case.m, K), case.randn(K, case.n // case.world, scale=K**-0.5)


def cost(case):
    m, n_local, s = case.m, case.n // case.world, case.itemsize
    n = case.world * n_local
    return Cost(
        flops=2 * m * n_local * K,
        hbm=(m * K + K * n_local + m * n) * s,
        link=link.all_gather(m * n * s, case.world),
    )


def stacked_then_reshaped(A, B):
    C = solution(A, B)
    return torch.cat(C.chunk(dist.get_world_size(), dim=1)).view(C.shape)


def left_factor_assumed_shared(A, B):
    shards = [torch.empty_like(B) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, B)
    return A @ torch.cat(shards, dim=1)


def own_columns_first(A, B):
    return solution(A, B).roll(-dist.get_rank() * B.shape[1], dims=1)


MUTANTS = {
    "stacked_then_reshaped": stacked_then_reshaped,
    "left_factor_assumed_shared": left_factor_assumed_shared,
    "own_columns_first": own_columns_first,
}
