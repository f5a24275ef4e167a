"""MLP on a column-sharded input with row-sharded output: all-gather, GEMM, SiLU, GEMM, reduce-scatter.

Every rank has its own full W1 and W2.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link


def solution(x_local: torch.Tensor, W1: torch.Tensor, W2: torch.Tensor) -> torch.Tensor:
    world, rank = dist.get_world_size(), dist.get_rank()
    shards = [torch.empty_like(x_local) for _ in range(world)]
    dist.all_gather(shards, x_local)
    hidden = F.silu(torch.cat(shards, dim=1) @ W1)

    rows = hidden.shape[0] // world
    mine = slice(rank * rows, (rank + 1) * rows)
    spread = hidden.new_zeros(hidden.shape[0], W2.shape[1])
    spread[mine] = hidden[mine] @ W2

    block = spread.new_empty(rows, W2.shape[1])
    dist.reduce_scatter_tensor(block, spread)
    return block


PROBLEM = Problem(
    category="Tensor Parallel",
    source="Megatron-LM MLP with sequence-parallel output",
    sizes={"tiny": Size(32, 1), "paper": Size(1024, 1024), "large": Size(65536, 1)},
    deviations={
        "values": (
            "`W1` and `W2` are scaled by their fan-in, so that results are of order 1 and an error can be told from "
            "rounding"
        ),
    },
)

FEATURES = 512


def shape(case):
    """Rows and hidden width, each rounded up to a multiple of the world size. N is not used."""
    up = lambda size: -(-size // case.world) * case.world  # noqa: E731
    return up(case.m), up(256)


def inputs(case):
    rows, hidden = shape(case)
    return (
        case.randn(rows, hidden // case.world),
        case.randn(hidden, FEATURES, scale=hidden**-0.5),
        # SiLU of a unit normal has a second moment of 0.36: this gives the output a unit scale.
        case.randn(FEATURES, hidden, scale=(0.36 * FEATURES) ** -0.5),
    )


def cost(case):
    rows, hidden = shape(case)
    own_rows = rows // case.world
    # The reference multiplies all rows and reduce-scatters zeros; only this rank's rows matter.
    return Cost(
        flops=4 * own_rows * hidden * FEATURES,
        hbm=(2 * own_rows * hidden + 2 * hidden * FEATURES) * case.itemsize,
        link=link.all_to_all(own_rows * hidden * case.itemsize, case.world),
    )


def gathered(x_local):
    shards = [torch.empty_like(x_local) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, x_local)
    return torch.cat(shards, dim=1)


def silu_forgotten(x_local, W1, W2):
    return gathered(x_local).chunk(dist.get_world_size())[dist.get_rank()] @ W1 @ W2


def weights_taken_for_shards(x_local, W1, W2):
    products = F.silu(gathered(x_local) @ W1) @ W2
    block = products.new_empty(products.shape[0] // dist.get_world_size(), products.shape[1])
    dist.reduce_scatter_tensor(block, products)
    return block


def rows_of_the_next_rank(x_local, W1, W2):
    rows = x_local.shape[0] // dist.get_world_size()
    return solution(x_local.roll(-rows, dims=0), W1, W2)


MUTANTS = {
    "silu_forgotten": silu_forgotten,
    "weights_taken_for_shards": weights_taken_for_shards,
    "rows_of_the_next_rank": rows_of_the_next_rank,
}
