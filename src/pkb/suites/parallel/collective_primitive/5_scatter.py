"""Scatter: rank i ends with block i of the tensor that rank `src` holds.

The root passes W blocks along its first dim; the others pass a tensor of the shape that they will receive.
"""

import torch
import torch.distributed as dist

from pkb import Cost, Problem, Size, link


def solution(tensor: torch.Tensor, src: int = 0) -> torch.Tensor:
    if dist.get_rank() != src:
        received = torch.empty_like(tensor)
        dist.scatter(received, None, src)
        return received
    blocks = [block.contiguous() for block in tensor.chunk(dist.get_world_size())]
    if blocks[0].shape[0] == 1:
        blocks = [block.squeeze(0) for block in blocks]
    received = torch.empty_like(blocks[0])
    dist.scatter(received, blocks, src)
    return received


PROBLEM = Problem(
    category="Collective Primitive",
    source="NCCL and MPI scatter; handing out batches or shards from one rank",
    sizes={"tiny": Size(16, 8), "paper": Size(1024, 1024), "large": Size(8192, 8192)},
    exact=True,
    deviations={
        "values": (
            "normal values in place of one constant for each block; ranks that are not the root pass noise, not "
            "zeros, in `tensor`"
        ),
        "scalars": "`src` is passed, and is every rank in turn",
    },
)


def root(case):
    return case.trial % case.world


def inputs(case):
    # The others hold noise, not zeros: echoing the argument must not look right.
    blocks = (case.world,) if case.rank == root(case) else ()
    return case.randn(*blocks, case.m, case.n), root(case)


def cost(case):
    block = case.m * case.n * case.itemsize
    is_root = case.rank == root(case)
    read = case.world * block if is_root else 0
    return Cost(flops=0, hbm=read + block, link=link.scatter(case.world * block, case.world, is_root))


def argument_echoed(tensor, src=0):
    rank = dist.get_rank()
    return tensor[rank].clone() if rank == src else tensor.clone()


def root_keeps_its_first_block(tensor, src=0):
    received = solution(tensor, src)
    return tensor[0].clone() if dist.get_rank() == src else received


def first_block_to_the_root(tensor, src=0):
    return solution(tensor.roll(src, dims=0) if dist.get_rank() == src else tensor, src)


MUTANTS = {
    "argument_echoed": argument_echoed,
    "root_keeps_its_first_block": root_keeps_its_first_block,
    "first_block_to_the_root": first_block_to_the_root,
}
