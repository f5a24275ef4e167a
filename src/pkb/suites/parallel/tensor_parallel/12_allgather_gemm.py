"""Matrix product with a column-sharded left factor. Every rank has its own right factor."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(A_local: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    shards = [torch.empty_like(A_local) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, A_local)
    return torch.cat(shards, dim=1) @ B


PROBLEM = Problem(
    category="Tensor Parallel",
    source="all-gather + GEMM (Megatron-LM, Flux, async tensor parallelism)",
    sizes={"tiny": Size(24, 16), "paper": Size(1024, 1024), "large": Size(32768, 8192)},
    requires={"the inner dim K = 512 is split over the ranks": lambda case: K % case.world == 0},
    deviations={
        "values": "`B` is scaled by K^-1/2, so that results are of order 1 and an error can be told from rounding",
    },
)

K = 512


def inputs(case):
    return case.randn(case.m, K // case.world), case.randn(K, case.n, scale=K**-0.5)


def cost(case):
    m, n, s = case.m, case.n, case.itemsize
    return Cost(flops=2 * m * n * K, hbm=(m * K + K * n + m * n) * s, link=link.all_gather(m * K * s, case.world))


def gathered_along_rows(A_local, B):
    rows, inner_local = A_local.shape
    stacked = A_local.new_empty(dist.get_world_size() * rows, inner_local)
    dist.all_gather_into_tensor(stacked, A_local)
    return stacked.view(rows, -1) @ B


def own_shard_first(A_local, B):
    return solution(A_local, B.roll(dist.get_rank() * A_local.shape[1], dims=0))


def right_factor_assumed_shared(A_local, B):
    B = B.clone()
    dist.broadcast(B, 0)
    return solution(A_local, B)


MUTANTS = {
    "gathered_along_rows": gathered_along_rows,
    "own_shard_first": own_shard_first,
    "right_factor_assumed_shared": right_factor_assumed_shared,
}
