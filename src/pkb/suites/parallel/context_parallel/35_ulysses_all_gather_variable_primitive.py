"""All-gather of shards whose sizes differ: every rank ends with all ranks' tensors joined along `gather_dim`.

Shards agree in every other dim. No rank knows the others' sizes beforehand, they change from call to call,
and one of them may be 0. `gather_dim` may be negative. The result is contiguous and holds no padding.
"""

import math

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def all_shapes(x: torch.Tensor, group: dist.ProcessGroup | None) -> list[list[int]]:
    own = torch.tensor(x.shape, device=x.device)
    shapes = own.new_empty(dist.get_world_size(group) * x.dim())
    dist.all_gather_into_tensor(shapes, own, group=group)
    return shapes.view(-1, x.dim()).tolist()


def all_padded(x: torch.Tensor, length: int, group: dist.ProcessGroup | None) -> torch.Tensor:
    """One row of `length` elements per rank, the shard in its beginning."""
    padded = x.new_zeros(length)
    padded[: x.numel()] = x.flatten()
    gathered = x.new_empty(dist.get_world_size(group) * length)
    dist.all_gather_into_tensor(gathered, padded, group=group)
    return gathered.view(-1, length)


def solution(x: torch.Tensor, gather_dim: int, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    if dist.get_world_size(group) == 1:
        return x.contiguous()
    shapes = all_shapes(x, group)
    rows = all_padded(x, max(map(math.prod, shapes)), group)
    shards = [row[: math.prod(shape)].view(shape) for row, shape in zip(rows, shapes, strict=True)]
    return torch.cat(shards, dim=gather_dim)


PROBLEM = Problem(
    category="Context Parallel",
    source="the all-gather of uneven sequence shards under DeepSpeed-Ulysses, in VeOmni's form",
    sizes={"tiny": Size(32, 24), "paper": Size(1024, 1024), "large": Size(32768, 8192)},
    exact=True,
    deviations={
        "sizes": (
            "shards `x` differ in size between ranks, by up to a quarter, and one is empty in one trial; the "
            "published shards are all equal, so that the variable sizes are never used"
        ),
        "variants": (
            "later trials gather along other dims (`gather_dim`), of an `x` of three dims or with other strides"
        ),
    },
)


def least(case, rank, full):
    """The smallest size that a rank may draw along the gathered dim."""
    is_empty = case.trial % 5 == 2 and rank == case.trial % case.world
    return 0 if is_empty else full - full // 4


def drawn_size(case, full):
    own = least(case, case.rank, full)
    return own + case.integer(0, full // 4 + 1) if own else 0


def inputs(case):
    m, n = case.m, case.n
    match case.trial % 5:
        case 1:
            return case.randn(m, drawn_size(case, n)), 1, None
        case 3:
            return case.randn(drawn_size(case, n), m).T, -1, None
        case 4:
            return case.randn(2, drawn_size(case, m), n // 2), 1, None
    return case.randn(drawn_size(case, m), n), 0, None


def cost(case):
    row = case.n * case.itemsize
    # The smallest shards that may be drawn. The reference pads all of them to the longest.
    own, every = least(case, case.rank, case.m), sum(least(case, rank, case.m) for rank in range(case.world))
    return Cost(
        flops=0,
        hbm=(own + every) * row,
        link=link.all_gather_uneven(own * row, every * row, case.world),
    )


def padding_left_in(x, gather_dim, group=None):
    right = solution(x, gather_dim, group)
    rows = all_padded(x, max(map(math.prod, all_shapes(x, group))), group)
    return rows.flatten()[: right.numel()].view(right.shape)


def joined_as_if_along_the_first_dim(x, gather_dim, group=None):
    shapes = all_shapes(x, group)
    rows = all_padded(x, max(map(math.prod, shapes)), group)
    flat = torch.cat([row[: math.prod(shape)] for row, shape in zip(rows, shapes, strict=True)])
    return flat.view_as(solution(x, gather_dim, group))


def own_shard_first(x, gather_dim, group=None):
    before = sum(shape[gather_dim] for shape in all_shapes(x, group)[: dist.get_rank(group)])
    return solution(x, gather_dim, group).roll(-before, dims=gather_dim)


MUTANTS = {
    "padding_left_in": padding_left_in,
    "joined_as_if_along_the_first_dim": joined_as_if_along_the_first_dim,
    "own_shard_first": own_shard_first,
}
