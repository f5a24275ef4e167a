"""The least work of one rank, which is a lower bound on every honest time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """Bytes that must leave (egress) and enter (ingress) one rank over its links.

    A switch can help. With multicast a rank sends once what all peers need: an all-gather of N bytes on w ranks sends
    N / w per rank instead of N (w - 1) / w. With sums in the switch a rank receives one sum instead of all terms: a
    reduce-scatter receives N / w instead of N (w - 1) / w. An all-reduce is both, so N bytes leave and N bytes enter a
    rank, instead of 2 N (w - 1) / w each. Bytes that differ from peer to peer cannot be saved.
    """

    egress: float
    """Bytes that leave where the switch only forwards."""
    ingress: float
    """Bytes that enter where the switch only forwards."""
    saved_egress: float = 0.0
    """Those bytes of the egress that a switch with multicast saves."""
    saved_ingress: float = 0.0
    """Those bytes of the ingress that a switch that sums saves."""

    def __add__(self, other: "Link") -> "Link":
        return Link(
            self.egress + other.egress,
            self.ingress + other.ingress,
            self.saved_egress + other.saved_egress,
            self.saved_ingress + other.saved_ingress,
        )

    def find_busiest(self, in_switch: bool = False) -> float:
        """Return the bytes in the busier direction; `in_switch` says whether the switch multicasts and sums."""
        if in_switch:
            return max(self.egress - self.saved_egress, self.ingress - self.saved_ingress)
        return max(self.egress, self.ingress)


@dataclass(frozen=True)
class Cost:
    """Lower bounds for one rank of one case."""

    flops: float
    """Floating-point operations, a multiply-add counted as two."""
    hbm: float
    """Bytes through device memory: each input read once, each output written once."""
    link: Link
    """Bytes between ranks, and how many of them a switch with multicast and sums saves."""
