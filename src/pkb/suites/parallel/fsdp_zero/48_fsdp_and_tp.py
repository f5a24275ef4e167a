"""SwiGLU feed-forward layer on a grid of ranks: tensor parallel in one direction, weights sharded in the other.

Rank = fsdp index * n_tp + tp index. Ranks with consecutive numbers form a tensor-parallel group, which splits the
inner width and works on the same rows; ranks n_tp apart form a group over which each weight's model dim is
sharded: the rows of W1 and W2 and the columns of W3, in order of the fsdp index. Weights are [in, out].
"""

import math
from functools import cache

import torch
import torch.distributed as dist
import torch.nn.functional as F

from pkb import Cost, Problem, Size, link


@cache
def tp_and_fsdp_groups(n_tp: int, n_fsdp: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    ranks = torch.arange(n_fsdp * n_tp).view(n_fsdp, n_tp)
    tp_group, _ = dist.new_subgroups_by_enumeration(ranks.tolist())
    fsdp_group, _ = dist.new_subgroups_by_enumeration(ranks.T.tolist())
    return tp_group, fsdp_group


def gathered(shard: torch.Tensor, dim: int, group: dist.ProcessGroup) -> torch.Tensor:
    shards = [torch.empty_like(shard) for _ in range(dist.get_world_size(group))]
    dist.all_gather(shards, shard, group=group)
    return torch.cat(shards, dim=dim)


def swiglu_summed(
    x: torch.Tensor, W1: torch.Tensor, W2: torch.Tensor, W3: torch.Tensor, tp_group: dist.ProcessGroup
) -> torch.Tensor:
    y = (F.silu(x @ W1) * (x @ W2)) @ W3
    dist.all_reduce(y, group=tp_group)
    return y


def solution(
    x_local: torch.Tensor,
    W1_shard: torch.Tensor,
    W2_shard: torch.Tensor,
    W3_shard: torch.Tensor,
    n_tp: int,
    n_fsdp: int,
) -> torch.Tensor:
    assert dist.get_world_size() == n_tp * n_fsdp
    tp_group, fsdp_group = tp_and_fsdp_groups(n_tp, n_fsdp)
    W1 = gathered(W1_shard, 0, fsdp_group)
    W2 = gathered(W2_shard, 0, fsdp_group)
    W3 = gathered(W3_shard, 1, fsdp_group)
    return swiglu_summed(x_local, W1, W2, W3, tp_group)


PROBLEM = Problem(
    category="FSDP / ZeRO",
    source="Llama's feed-forward layer under FSDP x tensor parallelism (torchtitan, Megatron-LM)",
    sizes={"tiny": Size(24, 40), "paper": Size(1024, 1024), "large": Size(16384, 16384)},
    deviations={
        "values": (
            "weights are scaled by their fan-in, so that results are of order 1 and an error can be told from rounding"
        ),
        "scalars": (
            "`n_tp` and `n_fsdp` change places in one trial, so that two ranks have a tensor-parallel sum as well"
        ),
    },
)


def layout(case):
    """n_tp and n_fsdp: the smallest proper divisor of the world size for n_tp, 1 where there is none."""
    world = case.world
    n_tp = next((t for t in range(2, world // 2 + 1) if world % t == 0), 1)
    # One trial turns the grid, so that two ranks have a tensor-parallel sum as well.
    return (world // n_tp, n_tp) if case.trial == 3 else (n_tp, world // n_tp)


def shape(case):
    """Local rows, model width and inner width: the published ones up to N = 1024, wider with N beyond."""
    n_tp, n_fsdp = layout(case)
    up = lambda size, unit: -(-size // unit) * unit  # noqa: E731
    model = up(max(32, min(case.n, 256), case.n // 4), math.lcm(n_tp, n_fsdp))
    batch = up(max(2 * case.m, 2 * case.world), n_fsdp)
    return batch // n_fsdp, model, up(max(64, case.m), n_tp)


def inputs(case):
    n_tp, n_fsdp = layout(case)
    rows, model, inner = shape(case)
    x = case.shared.randn(n_fsdp * rows, model)
    in_shard = (model // n_fsdp, inner // n_tp)
    return (
        x.chunk(n_fsdp)[case.rank // n_tp].clone(),
        case.randn(*in_shard, scale=model**-0.5),
        case.randn(*in_shard, scale=model**-0.5),
        # SiLU of a unit normal has a second moment of 0.36: this gives the output a unit scale.
        case.randn(*in_shard[::-1], scale=(0.36 * inner) ** -0.5),
        n_tp,
        n_fsdp,
    )


def cost(case):
    n_tp, n_fsdp = layout(case)
    rows, model, inner = shape(case)
    s, weights = case.itemsize, 3 * model * inner / n_tp
    return Cost(
        flops=2 * rows * weights,
        hbm=(2 * rows * model + weights / n_fsdp) * s,
        link=link.all_gather(weights * s, n_fsdp) + link.all_reduce(rows * model * s, n_tp),
    )


def gates_swapped(x_local, W1_shard, W2_shard, W3_shard, n_tp, n_fsdp):
    return solution(x_local, W2_shard, W1_shard, W3_shard, n_tp, n_fsdp)


def w3_gathered_by_rows(x_local, W1_shard, W2_shard, W3_shard, n_tp, n_fsdp):
    tp_group, fsdp_group = tp_and_fsdp_groups(n_tp, n_fsdp)
    W1, W2 = (gathered(shard, 0, fsdp_group) for shard in (W1_shard, W2_shard))
    W3 = gathered(W3_shard, 0, fsdp_group).view(W1.shape[1], W1.shape[0])
    return swiglu_summed(x_local, W1, W2, W3, tp_group)


def own_weights_repeated(x_local, W1_shard, W2_shard, W3_shard, n_tp, n_fsdp):
    tp_group, _ = tp_and_fsdp_groups(n_tp, n_fsdp)
    W1, W2, W3 = W1_shard.repeat(n_fsdp, 1), W2_shard.repeat(n_fsdp, 1), W3_shard.repeat(1, n_fsdp)
    return swiglu_summed(x_local, W1, W2, W3, tp_group)


def summed_over_the_wrong_group(x_local, W1_shard, W2_shard, W3_shard, n_tp, n_fsdp):
    _, fsdp_group = tp_and_fsdp_groups(n_tp, n_fsdp)
    W1, W2 = (gathered(shard, 0, fsdp_group) for shard in (W1_shard, W2_shard))
    return swiglu_summed(x_local, W1, W2, gathered(W3_shard, 1, fsdp_group), fsdp_group)


MUTANTS = {
    "gates_swapped": gates_swapped,
    "w3_gathered_by_rows": w3_gathered_by_rows,
    "own_weights_repeated": own_weights_repeated,
    "summed_over_the_wrong_group": summed_over_the_wrong_group,
}
