"""After Ulysses attention: whole sequences with a share of the heads become sequence shards with all heads.

`seq_dim` and `head_dim` are positions of axes, different and not negative. A sequence that the number of ranks
does not divide is first lengthened with zeros at its end, which stay in the result; then rank r gets the r-th of
W equal blocks of tokens, its heads in the order of the ranks they came from.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size
from pkb.problems.cost import Link
from pkb.suites.parallel._shared.ulysses import HEADS, WIDTH, draw_heads


def all_to_all(x: torch.Tensor, scatter_dim: int, gather_dim: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    blocks = torch.stack(x.chunk(dist.get_world_size(group), dim=scatter_dim))
    received = torch.empty_like(blocks)
    dist.all_to_all_single(received, blocks, group=group)
    return torch.cat(received.unbind(), dim=gather_dim)


def padding(x: torch.Tensor, dim: int, parts: int) -> torch.Tensor:
    """The zeros that `x` lacks along `dim` to be cut into equal parts; none if it needs none."""
    shape = list(x.shape)
    shape[dim] = -shape[dim] % parts
    return x.new_zeros(shape)


def solution(x: torch.Tensor, seq_dim: int, head_dim: int, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    zeros = padding(x, seq_dim, dist.get_world_size(group))
    return all_to_all(torch.cat([x, zeros], dim=seq_dim), seq_dim, head_dim, group)


PROBLEM = Problem(
    category="Context Parallel",
    source="DeepSpeed-Ulysses, in VeOmni's form: head shards back to sequence shards",
    sizes={"tiny": Size(128, 320), "paper": Size(1024, 1024), "large": Size(64, 4194304)},
    exact=True,
    deviations={
        "variants": (
            "later trials pose other orders of the axes of `x` (`seq_dim`, `head_dim`), and sequences that the ranks "
            "do not divide"
        ),
    },
)


def shape(case):
    """Batch and the length of the whole sequence: by turns one that most numbers of ranks divide, and one not."""
    return max(1, case.m // 64), max(1, case.n // 64 - case.trial % 2)


def inputs(case):
    return *draw_heads(case, *shape(case)), None


def cost(case):
    batch, tokens = shape(case)
    block = -(-tokens // case.world)
    own = min(block, max(0, tokens - case.rank * block))
    token = batch * HEADS * WIDTH * case.itemsize
    return Cost(
        flops=0,
        hbm=(tokens + case.world * block) * token,
        link=Link(egress=(tokens - own) * token, ingress=(case.world - 1) * own * token),
    )


def padded_at_the_start(x, seq_dim, head_dim, group=None):
    zeros = padding(x, seq_dim, dist.get_world_size(group))
    return all_to_all(torch.cat([zeros, x], dim=seq_dim), seq_dim, head_dim, group)


def padded_block_by_block(x, seq_dim, head_dim, group=None):
    """Blocks as even as they can be, the shorter ones padded each for itself."""
    blocks = x.tensor_split(dist.get_world_size(group), dim=seq_dim)
    longest = blocks[0].shape[seq_dim]
    even = [part for block in blocks for part in (block, padding(block, seq_dim, longest))]
    return all_to_all(torch.cat(even, dim=seq_dim), seq_dim, head_dim, group)


def last_token_as_padding(x, seq_dim, head_dim, group=None):
    last = x.narrow(seq_dim, -1, 1).expand_as(padding(x, seq_dim, dist.get_world_size(group)))
    return all_to_all(torch.cat([x, last], dim=seq_dim), seq_dim, head_dim, group)


def nothing_sent(x, seq_dim, head_dim, group=None):
    padded = torch.cat([x, padding(x, seq_dim, dist.get_world_size(group))], dim=seq_dim)
    return torch.cat(padded.chunk(dist.get_world_size(group), dim=seq_dim), dim=head_dim)


MUTANTS = {
    "padded_at_the_start": padded_at_the_start,
    "padded_block_by_block": padded_block_by_block,
    "last_token_as_padding": last_token_as_padding,
    "nothing_sent": nothing_sent,
}
