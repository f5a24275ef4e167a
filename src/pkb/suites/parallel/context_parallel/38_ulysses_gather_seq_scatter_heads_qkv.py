"""Before Ulysses attention, q, k and v in one tensor: sequence shards become whole sequences with fewer heads.

The last axis holds all of q, then k, then v. Rank r gets the r-th block of heads of each of the three, tokens in
rank order; `restore_shape` lays the three side by side again, otherwise they keep an axis of their own. If
`unpadded_dim_size` is no multiple of the number of ranks, only that many tokens from the start of the joined
sequence are kept; None and any multiple leave the sequence whole. `seq_dim` is not negative and not the last axis.
"""

import torch
import torch.distributed as dist

from pkb import Problem, Size
from pkb.suites.parallel._shared.ulysses import HEADS, WIDTH, gather_sequence_cost


def all_to_all(x: torch.Tensor, scatter_dim: int, gather_dim: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    blocks = torch.stack(x.chunk(dist.get_world_size(group), dim=scatter_dim))
    received = torch.empty_like(blocks)
    dist.all_to_all_single(received, blocks, group=group)
    return torch.cat(received.unbind(), dim=gather_dim)


def solution(
    qkv_tensor: torch.Tensor,
    seq_dim: int,
    group: dist.ProcessGroup | None = None,
    unpadded_dim_size: int | None = None,
    restore_shape: bool = True,
) -> torch.Tensor:
    gathered = all_to_all(qkv_tensor.unflatten(-1, (3, -1)), -1, seq_dim, group)
    if restore_shape:
        gathered = gathered.flatten(-2)
    unpadded = unpadded_dim_size or 0
    if unpadded % dist.get_world_size(group):
        gathered = gathered.narrow(seq_dim, 0, unpadded)
    return gathered


PROBLEM = Problem(
    category="Context Parallel",
    source="DeepSpeed-Ulysses with fused QKV, in VeOmni's form: sequence shards to head shards",
    sizes={"tiny": Size(128, 192), "paper": Size(1024, 1024), "large": Size(64, 4194304)},
    exact=True,
    requires={"the 8 heads are split over the ranks": lambda case: HEADS % case.world == 0},
    deviations={
        "variants": (
            "later trials pose a `qkv_tensor` of two dims or with tokens first (`seq_dim`), lengths that are padded "
            "(`unpadded_dim_size`), and `restore_shape` False"
        ),
    },
)


def shape(case):
    """Batch and local sequence length; once the batch is part of the sequence."""
    batch, tokens = max(1, case.m // 64), max(1, case.n // 64)
    return (1, batch * tokens) if case.trial % 5 == 3 else (batch, tokens)


def unpadded(case):
    every = case.world * shape(case)[1]
    return (None, every - 1, 0, every - case.world + 1, every - case.world)[case.trial % 5]


def inputs(case):
    batch, tokens = shape(case)
    leading, seq_dim = {3: ((tokens,), 0), 4: ((tokens, batch), 0)}.get(case.trial % 5, ((batch, tokens), 1))
    restore_shape = case.trial % 5 not in (2, 3)
    return case.randn(*leading, 3 * HEADS * WIDTH), seq_dim, None, unpadded(case), restore_shape


def cost(case):
    batch, tokens = shape(case)
    return gather_sequence_cost(case, tokens, unpadded(case) or 0, features=batch * 3 * HEADS * WIDTH)


def three_not_told_apart(qkv_tensor, seq_dim, group=None, unpadded_dim_size=None, restore_shape=True):
    right = solution(qkv_tensor, seq_dim, group, unpadded_dim_size, restore_shape)
    whole = all_to_all(qkv_tensor, -1, seq_dim, group)
    return whole.narrow(seq_dim, 0, right.shape[seq_dim]).reshape(right.shape)


def never_cut(qkv_tensor, seq_dim, group=None, unpadded_dim_size=None, restore_shape=True):
    return solution(qkv_tensor, seq_dim, group, None, restore_shape)


def shape_always_restored(qkv_tensor, seq_dim, group=None, unpadded_dim_size=None, restore_shape=True):
    return solution(qkv_tensor, seq_dim, group, unpadded_dim_size, True)


MUTANTS = {
    "three_not_told_apart": three_not_told_apart,
    "never_cut": never_cut,
    "shape_always_restored": shape_always_restored,
}
