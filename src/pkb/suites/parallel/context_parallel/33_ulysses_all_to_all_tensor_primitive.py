"""All-to-all between two dims: block j along `scatter_dim` goes to rank j, which joins blocks along `gather_dim`.

The dims may be equal, may be negative, and the tensor may be of any rank and not contiguous. `scatter_dim`
is divisible by the number of ranks. The result is contiguous, its blocks in the order of the source ranks.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(
    x: torch.Tensor, scatter_dim: int, gather_dim: int, group: dist.ProcessGroup | None = None
) -> torch.Tensor:
    world = dist.get_world_size(group)
    if world == 1:
        return x.contiguous()
    blocks = torch.stack(x.chunk(world, dim=scatter_dim))
    received = torch.empty_like(blocks)
    dist.all_to_all_single(received, blocks, group=group)
    return torch.cat(received.unbind(), dim=gather_dim)


PROBLEM = Problem(
    category="Context Parallel",
    source="the all-to-all under DeepSpeed-Ulysses, in VeOmni's form",
    sizes={"tiny": Size(64, 48), "paper": Size(1024, 1024), "large": Size(65536, 8192)},
    exact=True,
    requires={
        "the M rows are split over the ranks": lambda case: case.m % case.world == 0,
        "the N columns are split over the ranks": lambda case: case.n % case.world == 0,
    },
    deviations={
        "variants": (
            "later trials pose other pairs of `scatter_dim` and `gather_dim`, negative and equal ones too, and an `x` "
            "of three dims or with other strides; published calls are always (0, 1)"
        ),
    },
)


def inputs(case):
    m, n = case.m, case.n
    match case.trial % 5:
        case 1:
            return case.randn(m, n), 1, 0, None
        case 2:
            return case.randn(2, m // 2, n), 2, 1, None
        case 3:
            return case.randn(n, m).T, -2, -1, None
        case 4:
            return case.randn(m, n), 0, 0, None
    return case.randn(m, n), 0, 1, None


def cost(case):
    own = case.m * case.n * case.itemsize
    return Cost(flops=0, hbm=2 * own, link=link.all_to_all(own, case.world))


def nothing_sent(x, scatter_dim, gather_dim, group=None):
    return torch.cat(x.chunk(dist.get_world_size(group), dim=scatter_dim), dim=gather_dim)


def own_block_sent_to_all(x, scatter_dim, gather_dim, group=None):
    own = x.chunk(dist.get_world_size(group), dim=scatter_dim)[dist.get_rank(group)].contiguous()
    blocks = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(blocks, own, group=group)
    return torch.cat(blocks, dim=gather_dim)


def sources_in_reverse(x, scatter_dim, gather_dim, group=None):
    joined = solution(x, scatter_dim, gather_dim, group)
    return torch.cat(joined.chunk(dist.get_world_size(group), dim=gather_dim)[::-1], dim=gather_dim)


MUTANTS = {
    "nothing_sent": nothing_sent,
    "own_block_sent_to_all": own_block_sent_to_all,
    "sources_in_reverse": sources_in_reverse,
}
