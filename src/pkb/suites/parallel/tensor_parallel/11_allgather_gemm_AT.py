"""Matrix product with a column-sharded left factor, gathered transposed.

The result is the transposed view of a contiguous [N, M] product. Every rank has its own right factor.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(A_local: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    rows, inner_local = A_local.shape
    A_T = A_local.new_empty(dist.get_world_size() * inner_local, rows)
    dist.all_gather_into_tensor(A_T, A_local.T.contiguous())
    return (B.T @ A_T).T


PROBLEM = Problem(
    category="Tensor Parallel",
    source="all-gather + GEMM with a transposed activation (Megatron-LM, async tensor parallelism)",
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


def result_read_in_memory_order(A_local, B):
    C = solution(A_local, B)
    return C.T.reshape(C.shape)


def shards_sent_untransposed(A_local, B):
    rows, inner_local = A_local.shape
    return solution(A_local.reshape(inner_local, rows).T, B)


def right_factor_assumed_shared(A_local, B):
    B = B.clone()
    dist.broadcast(B, 0)
    return solution(A_local, B)


MUTANTS = {
    "result_read_in_memory_order": result_read_in_memory_order,
    "shards_sent_untransposed": shards_sent_untransposed,
    "right_factor_assumed_shared": right_factor_assumed_shared,
}
