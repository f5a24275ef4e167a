"""All-gather along the first dim: every rank ends with all ranks' tensors, one below the other in rank order.

The tensor may have any number of dims from one and need not be contiguous; the result is contiguous.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    world = dist.get_world_size(group)
    if world == 1:
        return x.contiguous()
    gathered = x.new_empty(world * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(gathered, x.contiguous(), group=group)
    return gathered


PROBLEM = Problem(
    category="Context Parallel",
    source="the all-gather under DeepSpeed-Ulysses, in VeOmni's form",
    sizes={"tiny": Size(32, 24), "paper": Size(1024, 1024), "large": Size(65536, 8192)},
    exact=True,
    deviations={
        "variants": "later trials pose an `x` of one or three dims, and one with other strides",
    },
)


def inputs(case):
    m, n = case.m, case.n
    match case.trial % 5:
        case 1:
            return case.randn(n, m).T, None
        case 2:
            return case.randn(m * n), None
        case 3:
            return case.randn(m, 1, n), None
    return case.randn(m, n), None


def cost(case):
    own = case.m * case.n * case.itemsize
    return Cost(flops=0, hbm=own + case.world * own, link=link.all_gather(case.world * own, case.world))


def own_shard_repeated(x, group=None):
    return torch.cat([x] * dist.get_world_size(group))


def own_shard_first(x, group=None):
    return solution(x, group).roll(-dist.get_rank(group) * x.shape[0], dims=0)


def strides_ignored(x, group=None):
    in_memory_order = x if x.is_contiguous() else x.T.contiguous().view(x.shape)
    return solution(in_memory_order, group)


MUTANTS = {
    "own_shard_repeated": own_shard_repeated,
    "own_shard_first": own_shard_first,
    "strides_ignored": strides_ignored,
}
