"""The speed of light of problems, and how much of it timed candidates reach."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from pkb.analyse.tables import list_timed_rows
from pkb.errors import UsageError
from pkb.hardware.roofline import Hardware
from pkb.problems.problem import Problem
from pkb.problems.size import Size
from pkb.problems.suite import Suite
from pkb.row import Row


@dataclass(frozen=True)
class SpeedOfLight:
    """Microseconds that one problem's least work needs on some hardware, by resource."""

    problem: str
    category: str
    m: int
    n: int
    size: str
    """The name of a KernelBench task's size, which has it in place of `m` and `n`."""
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
class LightScore:
    """How much of the speed of light a timed candidate and its reference reach."""

    row: Row
    light_us: float | None
    """None where the rates of the hardware are unknown."""
    reference_percent: float | None
    """The percentage of the speed of light that the reference reached."""
    candidate_percent: float | None
    score: float | None
    """The SOL score."""


def compute_speed_of_light(
    problem: Problem, hardware: Hardware, size: str | Size | None, dtype: str, world: int, shared: bool | None = None
) -> SpeedOfLight:
    """Return the least time of a problem on some hardware. Raises UsageError where its ranks do not fit.

    Ranks have a GPU each, unless they are `shared` on one, or the hardware has only one.
    """
    one_device = hardware.gpus == 1 if shared is None else shared
    if not one_device and world > hardware.gpus:
        raise UsageError(f"{hardware.name} has {hardware.gpus} GPUs, not {world}; lower --nproc")
    costs = problem.rank_costs(size, dtype, world)
    us = {resource: 1e6 * s for resource, s in hardware.compute_slowest_times(costs, dtype, one_device).items()}
    bound, m_n = max(us, key=lambda resource: us[resource]), problem.size(size)
    times = (us["compute"], us["memory"], us["link"], us[bound])
    return SpeedOfLight(problem.stem, problem.category, m_n.m, m_n.n, m_n.name, dtype, world, bound, *times)


def compute_sol_score(reference_us: float, candidate_us: float, light_us: float) -> float | None:
    """Return 1 at the speed of light, 1/2 at the reference's speed; None where the reference cannot be beaten."""
    if reference_us <= light_us:
        return None
    # Measured rates can be beaten by a little: nothing is faster than light.
    return 1 / (1 + max(candidate_us - light_us, 0.0) / (reference_us - light_us))


def score_rows(rows: Iterable[Row], suite: Suite, hardware: Hardware | None = None) -> list[LightScore]:
    """Return the scores of all samples that are right and timed, in the problems' order.

    The speed of light is the record's own; where the record has none, that of `hardware`.
    """

    # Platforms import torch, which other readers of records do not need.
    from pkb.platforms import load_platforms

    @cache
    def find_light_us(problem: str, size: Size, dtype: str, world: int, platform: str) -> float | None:
        known = load_platforms().get(platform)
        if hardware is None or known is None:
            return None
        return compute_speed_of_light(suite.load(problem), hardware, size, dtype, world, known.one_device).us

    timed = sorted(list_timed_rows(rows), key=lambda row: (row.number, row.run, row.sample))
    return [
        _score_row(
            row,
            row.roofline_us
            or find_light_us(row.problem, Size(row.m, row.n, row.size), row.dtype, row.world, row.platform),
        )
        for row in timed
    ]


def _score_row(row: Row, light_us: float | None) -> LightScore:
    reference_us, candidate_us = row.reference_us, row.candidate_us
    if light_us is None or not reference_us or not candidate_us:
        return LightScore(row, light_us, None, None, None)
    percents = 100 * light_us / reference_us, 100 * light_us / candidate_us
    return LightScore(row, light_us, *percents, compute_sol_score(reference_us, candidate_us, light_us))
