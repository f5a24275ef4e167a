"""The speed of light: how fast a rank's least work can be done on some hardware, and which resource limits it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pkb.base.paths import find_cache_folder
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
    """A word of the driver's name for the GPU."""
    gpus: int
    hbm_bytes_per_s: float
    link_bytes_per_s: float
    """Bytes per second to all other GPUs together, per direction."""
    flops_per_s: dict[str, float]
    """Floating-point operations per second, by dtype."""
    sms: int = 0
    """Multiprocessors; this and the following are 0 where unknown."""
    shared_memory_kib: int = 0
    """Shared memory per multiprocessor."""
    l2_mib: int = 0
    in_switch: bool = False
    """Whether the switch between the GPUs multicasts and sums, as NVLink's does from Hopper on."""

    @classmethod
    def load(cls, profile: str) -> "Hardware":
        """Read a shipped profile, or the one that `pkb roofline --calibrate` has measured on this machine."""
        path = find_measured_path() if profile == MEASURED else _PROFILES / f"{profile}.toml"
        if not path.is_file():
            known = f"{', '.join(list_profiles())} (once `pkb roofline --calibrate` has measured it)"
            raise UsageError(f"unknown hardware {profile!r}; choose from {known}")
        return cls(**tomllib.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def find_by_gpu(cls, name: str) -> "Hardware | None":
        """Return the profile of a GPU by the driver's name for it; None for a GPU without a profile."""
        profiles = (cls.load(path.stem) for path in sorted(_PROFILES.glob("*.toml")))
        return next((profile for profile in profiles if profile.gpu in name.split()), None)

    def compute_times(self, cost: Cost, dtype: str) -> dict[str, float]:
        """Return the seconds that each resource needs at least."""
        return {
            "compute": cost.flops / self.flops_per_s[dtype],
            "memory": cost.hbm / self.hbm_bytes_per_s,
            "link": cost.link.find_busiest() / self.link_bytes_per_s,
        }

    def compute_slowest_times(self, costs: list[Cost], dtype: str, shared: bool = False) -> dict[str, float]:
        """Return the seconds that each resource needs at least: for the slowest rank, or for all ranks on one GPU."""
        if shared:
            # The links are the GPU's own memory.
            return self.compute_times(_add_costs(costs), dtype) | {"link": 0.0}
        return max((self.compute_times(cost, dtype) for cost in costs), key=lambda times: max(times.values()))

    def compute_speed_of_light(self, costs: list[Cost], dtype: str, shared: bool = False) -> float:
        """Return the seconds of the ranks' least work at peak rates, on a GPU for each rank or on one for all."""
        return max(self.compute_slowest_times(costs, dtype, shared).values())

    def compute_floor(self, costs: list[Cost], shared: bool, cache_bytes: int) -> float:
        """Return a lower bound on honest times in seconds.

        Products are 8-bit ones, what fits into the cache is free, and a switch that multicasts and sums is used to the
        full: an all-reduce of N bytes takes N / link_bytes_per_s there, and 2 N (w - 1) / w / link_bytes_per_s behind
        any other switch. (The fastest such kernels read sums of N / w bytes and multicast them: N + N / w bytes.)
        """
        devices = [_add_costs(costs)] if shared else costs
        fastest = _FP8_FACTOR * max(self.flops_per_s.values())
        times = [max(c.flops / fastest, (c.hbm - cache_bytes) / self.hbm_bytes_per_s, 0.0) for c in devices]
        # On one GPU the links are its memory, which the cache may replace.
        links = [] if shared else [c.link.find_busiest(self.in_switch) / self.link_bytes_per_s for c in costs]
        return max([*times, *links])

    def find_bound(self, cost: Cost, dtype: str) -> str:
        """Return the resource that needs longest."""
        times = self.compute_times(cost, dtype)
        return max(times, key=lambda resource: times[resource])


def list_profiles() -> list[str]:
    """Return the names of the shipped profiles, and last the name of the measured one."""
    return [*sorted(path.stem for path in _PROFILES.glob("*.toml")), MEASURED]


def find_measured_path() -> Path:
    return find_cache_folder() / "hardware" / f"{MEASURED}.toml"


def _add_costs(costs: list[Cost]) -> Cost:
    link = sum((cost.link for cost in costs), start=Link(0.0, 0.0))
    return Cost(sum(cost.flops for cost in costs), sum(cost.hbm for cost in costs), link)
