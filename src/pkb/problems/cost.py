"""The least work of one rank, which is a lower bound on every honest time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """Bytes that must leave (egress) and enter (ingress) one rank over its links."""

    egress: float
    ingress: float

    def __add__(self, other: "Link") -> "Link":
        return Link(self.egress + other.egress, self.ingress + other.ingress)


@dataclass(frozen=True)
class Cost:
    """Lower bounds for one rank of one case."""

    flops: float
    """Floating-point operations, a multiply-add counted as two."""
    hbm: float
    """Bytes through device memory: each input read once, each output written once."""
    link: Link
    """Bytes between ranks, without help from the switch (no multicast, no in-switch sums)."""
