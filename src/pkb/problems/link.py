"""Bytes that collectives must move per rank, in each direction.

`full` is always the size in bytes of the whole tensor: what an all-gather ends with, what a
reduce-scatter or an all-to-all starts with, what an all-reduce sums.
"""

from pkb.problems.cost import Link


def all_gather(full: float, world: int) -> Link:
    share = full * (world - 1) / world
    return Link(share, share)


reduce_scatter = all_to_all = all_gather


def all_reduce(full: float, world: int) -> Link:
    return all_gather(full, world) + reduce_scatter(full, world)


def broadcast(full: float, world: int, is_root: bool) -> Link:
    if world == 1:
        return none()
    return Link(full, 0) if is_root else Link(0, full)


def reduce(full: float, world: int, is_root: bool) -> Link:
    return broadcast(full, world, not is_root)


def scatter(full: float, world: int, is_root: bool) -> Link:
    return Link(full * (world - 1) / world, 0) if is_root else Link(0, full / world)


def gather(full: float, world: int, is_root: bool) -> Link:
    sent = scatter(full, world, is_root)
    return Link(sent.ingress, sent.egress)


def none() -> Link:
    return Link(0, 0)
