"""Bytes that collectives must move per rank, in each direction.

`full` is always the size in bytes of the whole tensor: what an all-gather ends with, what a
reduce-scatter or an all-to-all starts with, what an all-reduce sums.
"""

from pkb.problems.cost import Link


def all_to_all(full: float, world: int) -> Link:
    share = full * (world - 1) / world
    return Link(share, share)


def all_gather(full: float, world: int) -> Link:
    return all_gather_uneven(full / world, full, world)


def all_gather_uneven(own: float, full: float, world: int) -> Link:
    """Return the bytes of an all-gather to which this rank contributes `own` bytes."""
    return Link(own * (world - 1), full - own, saved_egress=own * max(world - 2, 0))


def reduce_scatter(full: float, world: int) -> Link:
    share = full * (world - 1) / world
    return Link(share, share, saved_ingress=full / world * max(world - 2, 0))


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


def take_least(*ways: Link) -> Link:
    """Return what the cheapest of several ways moves, where the switch only forwards and where it helps."""
    plain = min(ways, key=Link.find_busiest)
    helped = min(way.find_busiest(in_switch=True) for way in ways)
    saved = max(plain.egress - helped, 0.0), max(plain.ingress - helped, 0.0)
    return Link(plain.egress, plain.ingress, *saved)


def none() -> Link:
    return Link(0, 0)
