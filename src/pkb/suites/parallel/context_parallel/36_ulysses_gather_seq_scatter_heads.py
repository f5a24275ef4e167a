"""Before Ulysses attention: sequence shards with all heads become whole sequences with a share of the heads.

`seq_dim` and `head_dim` are positions of axes, different and not negative. Rank r gets the r-th block of heads,
tokens in rank order. If `unpadded_dim_size` is no multiple of the number of ranks, only that many tokens from
the start of the joined sequence are kept; any multiple, 0 among them, leaves the sequence whole.
"""

import torch
import torch.distributed as dist

from pkb import Problem, Size
from pkb.suites.parallel._shared.ulysses import HEADS, WIDTH, draw_heads, gather_sequence_cost


def all_to_all(x: torch.Tensor, scatter_dim: int, gather_dim: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    blocks = torch.stack(x.chunk(dist.get_world_size(group), dim=scatter_dim))
    received = torch.empty_like(blocks)
    dist.all_to_all_single(received, blocks, group=group)
    return torch.cat(received.unbind(), dim=gather_dim)


def solution(
    x: torch.Tensor,
    seq_dim: int,
    head_dim: int,
    group: dist.ProcessGroup | None = None,
    unpadded_dim_size: int = 0,
) -> torch.Tensor:
    gathered = all_to_all(x, head_dim, seq_dim, group)
    if unpadded_dim_size % dist.get_world_size(group):
        gathered = gathered.narrow(seq_dim, 0, unpadded_dim_size)
    return gathered


PROBLEM = Problem(
    category="Context Parallel",
    source="DeepSpeed-Ulysses, in VeOmni's form: sequence shards to head shards",
    sizes={"tiny": Size(128, 192), "paper": Size(1024, 1024), "large": Size(64, 4194304)},
    exact=True,
    requires={"the 8 heads are split over the ranks": lambda case: HEADS % case.world == 0},
    deviations={
        "variants": (
            "later trials pose other orders of the axes of `x` (`seq_dim`, `head_dim`), and lengths that are padded "
            "(`unpadded_dim_size`); published calls are always (1, 2) and 0"
        ),
    },
)


def shape(case):
    """Batch and local sequence length."""
    return max(1, case.m // 64), max(1, case.n // 64)


def unpadded(case):
    every = case.world * shape(case)[1]
    return (0, every - 1, every - case.world, every - 1, every - case.world + 1)[case.trial % 5]


def inputs(case):
    return *draw_heads(case, *shape(case)), None, unpadded(case)


def cost(case):
    batch, tokens = shape(case)
    return gather_sequence_cost(case, tokens, unpadded(case), features=batch * HEADS * WIDTH)


def never_cut(x, seq_dim, head_dim, group=None, unpadded_dim_size=0):
    return solution(x, seq_dim, head_dim, group)


def cut_at_the_start(x, seq_dim, head_dim, group=None, unpadded_dim_size=0):
    whole = all_to_all(x, head_dim, seq_dim, group)
    kept = solution(x, seq_dim, head_dim, group, unpadded_dim_size).shape[seq_dim]
    return whole.narrow(seq_dim, whole.shape[seq_dim] - kept, kept)


def multiples_cut_too(x, seq_dim, head_dim, group=None, unpadded_dim_size=0):
    whole = all_to_all(x, head_dim, seq_dim, group)
    return whole.narrow(seq_dim, 0, unpadded_dim_size or whole.shape[seq_dim])


def nothing_sent(x, seq_dim, head_dim, group=None, unpadded_dim_size=0):
    whole = torch.cat(x.chunk(dist.get_world_size(group), dim=head_dim), dim=seq_dim)
    return whole.narrow(seq_dim, 0, solution(x, seq_dim, head_dim, group, unpadded_dim_size).shape[seq_dim])


MUTANTS = {
    "never_cut": never_cut,
    "cut_at_the_start": cut_at_the_start,
    "multiples_cut_too": multiples_cut_too,
    "nothing_sent": nothing_sent,
}
