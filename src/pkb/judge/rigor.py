"""How much is measured before the judge says how fast a candidate is."""

import math
from dataclasses import dataclass

from pkb.errors import UsageError


@dataclass(frozen=True)
class Rigor:
    name: str
    warm_up: int
    """Calls before the first timed one."""
    warm_up_s: float
    """Warming up ends after so long, however few calls that were; the record says how many."""
    calls: int
    """Timed calls at the least."""
    calls_per_block: int
    """At the most: large arguments make blocks shorter."""
    most_pairs: int
    """Pairs of blocks, should the interval stay wide."""
    checked_blocks: int
    """Timed blocks of which one call's outputs are checked."""
    most_pairs_together: int = 0
    """The same for several ranks, whose times vary more; 0 for no others."""
    warm_cache: bool = False

    def most_blocks(self, world: int) -> int:
        return (world > 1 and self.most_pairs_together) or self.most_pairs

    def least_blocks(self, calls_per_block: int) -> int:
        return math.ceil(self.calls / calls_per_block)


RIGORS = {
    "quick": Rigor("quick", 20, 2.0, calls=64, calls_per_block=8, most_pairs=16, checked_blocks=2),
    "paper": Rigor(
        "paper", 500, 10.0, calls=100, calls_per_block=10, most_pairs=30, checked_blocks=4, most_pairs_together=60
    ),
}


def rigor_named(name: str) -> Rigor:
    if name not in RIGORS:
        raise UsageError(f"unknown rigor {name!r}; choose from {', '.join(RIGORS)}")
    return RIGORS[name]
