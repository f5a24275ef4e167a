"""Row-parallel linear layer with sequence-parallel output: products are summed, each rank keeps a row block."""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(A_local: torch.Tensor, B_local: torch.Tensor) -> torch.Tensor:
    partial = A_local @ B_local
    block = partial.new_empty(partial.shape[0] // dist.get_world_size(), partial.shape[1])
    dist.reduce_scatter_tensor(block, partial)
    return block


PROBLEM = Problem(
    category="Tensor Parallel",
    source="row-parallel linear layer with sequence-parallel output (Megatron-LM, Flux)",
    sizes={"tiny": Size(32, 24), "paper": Size(1024, 1024), "large": Size(32768, 8192)},
    requires={
        "the M rows of the output are split over the ranks": lambda case: case.m % case.world == 0,
        "the inner dim K = 512 gives each rank at least one column": lambda case: case.world <= K,
    },
    deviations={
        "values": (
            "`B_local` is scaled by K^-1/2, so that results are of order 1 and an error can be told from rounding"
        ),
    },
)

K = 512


def inputs(case):
    inner = K // case.world
    return case.randn(case.m, inner), case.randn(inner, case.n, scale=K**-0.5)


def cost(case):
    m, n, inner, s = case.m, case.n, K // case.world, case.itemsize
    return Cost(
        flops=2 * m * n * inner + m * n * (case.world - 1) / case.world,
        hbm=(m * inner + inner * n + m * n / case.world) * s,
        link=link.reduce_scatter(m * n * s, case.world),
    )


def block_of_the_next_rank(A_local, B_local):
    rows = A_local.shape[0] // dist.get_world_size()
    return solution(A_local.roll(-rows, dims=0), B_local)


def rows_dealt_out_in_turn(A_local, B_local):
    dealt = A_local.unflatten(0, (-1, dist.get_world_size())).transpose(0, 1)
    return solution(dealt.flatten(0, 1), B_local)


def own_product_not_added(A_local, B_local):
    own = (A_local @ B_local).chunk(dist.get_world_size())[dist.get_rank()]
    return solution(A_local, B_local) - own


MUTANTS = {
    "block_of_the_next_rank": block_of_the_next_rank,
    "rows_dealt_out_in_turn": rows_dealt_out_in_turn,
    "own_product_not_added": own_product_not_added,
}
