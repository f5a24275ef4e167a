"""The speed of light of problems, and how near to it timed candidates come."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from pkb.analyse.rows import Row
from pkb.analyse.tables import speedups
from pkb.errors import UsageError
from pkb.hardware.roofline import Hardware
from pkb.platforms import platforms
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.problems.suite import Suite


@dataclass(frozen=True)
class Light:
    """Microseconds that one problem's least work needs on some hardware, by resource."""

    problem: str
    category: str
    m: int
    n: int
    size: str
    """Of a model, in place of the last two."""
    dtype: str
    world: int
    bound: str
    """The resource that needs longest: compute, memory or link."""
    compute_us: float
    memory_us: float
    link_us: float
    us: float
    """The speed of light."""


@dataclass(frozen=True)
class Scored:
    """A timed candidate beside the speed of light."""

    row: Row
    light_us: float | None
    """None where nobody knows the hardware that it ran on."""
    reference_percent: float | None
    """Of the speed of light that it reached."""
    candidate_percent: float | None
    score: float | None


def light(
    problem: Problem, hardware: Hardware, size: str | Size | None, dtype: str, world: int, shared: bool | None = None
) -> Light:
    """Ranks have a GPU each, unless they share one: when told so, or when the hardware has no other."""
    one_device = hardware.gpus == 1 if shared is None else shared
    if not one_device and world > hardware.gpus:
        raise UsageError(f"{hardware.name} has {hardware.gpus} GPUs, not {world}; lower --nproc")
    costs = [problem.cost(problem.case(size, dtype, world, rank)) for rank in range(world)]
    us = {resource: 1e6 * s for resource, s in hardware.needs(costs, dtype, one_device).items()}
    bound, m_n = max(us, key=lambda resource: us[resource]), problem.size(size)
    times = (us["compute"], us["memory"], us["link"], us[bound])
    return Light(problem.stem, problem.category, m_n.m, m_n.n, m_n.name, dtype, world, bound, *times)


def sol_score(reference_us: float, candidate_us: float, light_us: float) -> float | None:
    """1 at the speed of light, 1/2 at the reference's; None where the reference leaves nothing to win."""
    if reference_us <= light_us:
        return None
    # Measured rates can be beaten by a little: nothing is faster than light.
    return 1 / (1 + max(candidate_us - light_us, 0.0) / (reference_us - light_us))


def scored(rows: Iterable[Row], suite: Suite, hardware: Hardware | None = None) -> list[Scored]:
    """The right ones that were timed, in the problems' order.

    The speed of light is the record's own; where it has none, that of `hardware`.
    """

    @cache
    def on(problem: str, size: Size, dtype: str, world: int, platform: str) -> float | None:
        known = platforms().get(platform)
        if hardware is None or known is None:
            return None
        return light(suite.load(problem), hardware, size, dtype, world, known.one_device).us

    timed = sorted(speedups(rows), key=lambda row: (row.number, row.run, row.sample))
    return [
        _scored(
            row, row.roofline_us or on(row.problem, Size(row.m, row.n, row.size), row.dtype, row.world, row.platform)
        )
        for row in timed
    ]


def _scored(row: Row, light_us: float | None) -> Scored:
    reference_us, candidate_us = row.reference_us, row.candidate_us
    if light_us is None or not reference_us or not candidate_us:
        return Scored(row, light_us, None, None, None)
    percents = 100 * light_us / reference_us, 100 * light_us / candidate_us
    return Scored(row, light_us, *percents, sol_score(reference_us, candidate_us, light_us))
