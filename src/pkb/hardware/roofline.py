"""The speed of light: how fast a rank's least work could be done on given hardware, and what holds it back."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pkb.base.paths import home
from pkb.errors import UsageError
from pkb.problems.cost import Cost, Link

_PROFILES = Path(__file__).parent
MEASURED = "this_machine"
_FP8_FACTOR = 2.0
"""Tensor cores do 8-bit products twice as fast as 16-bit ones."""


@dataclass(frozen=True)
class Hardware:
    """Peak rates of one GPU among several."""

    name: str
    gpu: str
    """A word of the name that the driver gives the GPU."""
    gpus: int
    hbm_bytes_per_s: float
    link_bytes_per_s: float
    """Per direction."""
    flops_per_s: dict[str, float]
    """By dtype."""
    sms: int = 0
    """Multiprocessors; this and the following are 0 where we do not know."""
    shared_memory_kib: int = 0
    """Per multiprocessor."""
    l2_mib: int = 0

    @classmethod
    def named(cls, profile: str) -> "Hardware":
        """A shipped profile, or the one that `pkb roofline --calibrate` has measured here."""
        path = measured_path() if profile == MEASURED else _PROFILES / f"{profile}.toml"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in _PROFILES.glob("*.toml")))
            measured = f"{MEASURED} (once `pkb roofline --calibrate` has measured it)"
            raise UsageError(f"unknown hardware {profile!r}; choose from {known}, {measured}")
        return cls(**tomllib.loads(path.read_text()))

    @classmethod
    def of_gpu(cls, name: str) -> "Hardware | None":
        """The profile of a GPU by the driver's name for it; None for one that we have no figures of."""
        profiles = (cls.named(path.stem) for path in sorted(_PROFILES.glob("*.toml")))
        return next((profile for profile in profiles if profile.gpu in name.split()), None)

    def times(self, cost: Cost, dtype: str) -> dict[str, float]:
        """Seconds that each resource needs at the least."""
        return {
            "compute": cost.flops / self.flops_per_s[dtype],
            "memory": cost.hbm / self.hbm_bytes_per_s,
            "link": max(cost.link.egress, cost.link.ingress) / self.link_bytes_per_s,
        }

    def needs(self, costs: list[Cost], dtype: str, shared: bool = False) -> dict[str, float]:
        """Seconds that each resource needs for the least work: of the rank that takes longest, or of all on one GPU."""
        if shared:
            # The links are the GPU's own memory.
            return self.times(_together(costs), dtype) | {"link": 0.0}
        return max((self.times(cost, dtype) for cost in costs), key=lambda times: max(times.values()))

    def speed_of_light(self, costs: list[Cost], dtype: str, shared: bool = False) -> float:
        """Seconds that the ranks' least work takes at peak rates, each rank on a GPU of its own or all on one."""
        return max(self.needs(costs, dtype, shared).values())

    def floor(self, costs: list[Cost], shared: bool, cache_bytes: int) -> float:
        """Seconds below which no honest time lies, whatever the precision, were all that fits in the cache free."""
        alone = [_together(costs)] if shared else costs
        fastest = _FP8_FACTOR * max(self.flops_per_s.values())
        times = [max(c.flops / fastest, (c.hbm - cache_bytes) / self.hbm_bytes_per_s, 0.0) for c in alone]
        # On one GPU the links are its memory, and caches may stand in for them.
        links = [] if shared else [self.times(cost, "bfloat16")["link"] for cost in costs]
        return max([*times, *links])

    def bound(self, cost: Cost, dtype: str) -> str:
        """The resource that needs longest."""
        times = self.times(cost, dtype)
        return max(times, key=lambda resource: times[resource])


def measured_path() -> Path:
    return home() / "hardware" / f"{MEASURED}.toml"


def _together(costs: list[Cost]) -> Cost:
    link = Link(sum(cost.link.egress for cost in costs), sum(cost.link.ingress for cost in costs))
    return Cost(sum(cost.flops for cost in costs), sum(cost.hbm for cost in costs), link)
