"""The speed of light: how fast a rank's least work could be done on given hardware, and what holds it back."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pkb.cost import Cost
from pkb.errors import UsageError

_PROFILES = Path(__file__).parent / "hardware"


@dataclass(frozen=True)
class Hardware:
    """Peak rates of one GPU among several."""

    name: str
    gpus: int
    hbm_bytes_per_s: float
    link_bytes_per_s: float
    """Per direction."""
    flops_per_s: dict[str, float]
    """By dtype."""

    @classmethod
    def named(cls, profile: str) -> "Hardware":
        path = _PROFILES / f"{profile}.toml"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in _PROFILES.glob("*.toml")))
            raise UsageError(f"unknown hardware {profile!r}; choose from {known}")
        return cls(**tomllib.loads(path.read_text()))

    def times(self, cost: Cost, dtype: str) -> dict[str, float]:
        """Seconds that each resource needs at the least."""
        return {
            "compute": cost.flops / self.flops_per_s[dtype],
            "memory": cost.hbm / self.hbm_bytes_per_s,
            "link": max(cost.link.egress, cost.link.ingress) / self.link_bytes_per_s,
        }

    def bound(self, cost: Cost, dtype: str) -> str:
        """The resource that needs longest."""
        times = self.times(cost, dtype)
        return max(times, key=lambda resource: times[resource])
