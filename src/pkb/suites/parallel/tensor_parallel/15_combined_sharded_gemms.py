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
