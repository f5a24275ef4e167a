"""The floor under honest times knows what a switch can do: whatever a kernel can reach is above it."""

import pytest

from pkb.hardware.roofline import Hardware
from pkb.problems import link
from pkb.problems.cost import Cost
from pkb.problems.suite import list_problems, load_problem

N, WORLD = 128 << 20, 8
"""The bytes of problem 1 at `large`, and the ranks of one host."""


def compute_floor_us(moved: link.Link, profile: str, world: int = WORLD) -> float:
    hardware = Hardware.load(profile)
    return 1e6 * hardware.compute_floor([Cost(0, 0, moved)] * world, shared=False, cache_bytes=0)


def test_an_all_reduce_may_use_the_switch_where_it_sums() -> None:
    costs = load_problem("1_allreduce").rank_costs("large", "bfloat16", WORLD)
    floors = {name: 1e6 * Hardware.load(name).compute_floor(costs, False, 0) for name in ("h100_8", "h200_8")}
    assert floors == {"h100_8": pytest.approx(298.3, abs=0.1), "h200_8": pytest.approx(298.3, abs=0.1)}
    # Sums of N / w bytes are read through the switch, and multicast: what the fastest kernels do.
    fastest_us = 1e6 * (N + N / WORLD) / Hardware.load("h100_8").link_bytes_per_s
    assert fastest_us == pytest.approx(335.5, abs=0.1)
    assert floors["h100_8"] < fastest_us
    # The speed of light, which decides nothing, has no switch.
    assert 1e6 * Hardware.load("h100_8").compute_speed_of_light(costs, "bfloat16") == pytest.approx(522.0, abs=0.1)


def test_a_switch_that_only_forwards_helps_nobody() -> None:
    assert compute_floor_us(link.all_reduce(N, WORLD), "a100_8") == pytest.approx(1e6 * 1.75 * N / 300e9)
    assert compute_floor_us(link.all_reduce(N, WORLD), "l40s") == pytest.approx(1e6 * 1.75 * N / 32e9)


@pytest.mark.parametrize(
    ("moved", "egress", "ingress"),
    [
        (link.all_gather(N, WORLD), N / 8, N * 7 / 8),
        (link.reduce_scatter(N, WORLD), N * 7 / 8, N / 8),
        (link.all_reduce(N, WORLD), N, N),
        (link.all_to_all(N, WORLD), N * 7 / 8, N * 7 / 8),
        (link.broadcast(N, WORLD, is_root=True), N, 0),
        (link.all_gather_uneven(5 * N, 6 * N, WORLD), 5 * N, N),
        (link.all_reduce(N, 2), N, N),
        (link.all_reduce(N, 1), 0, 0),
    ],
)
def test_bytes_with_a_switch_that_multicasts_and_sums(moved: link.Link, egress: float, ingress: float) -> None:
    assert (moved.egress - moved.saved_egress, moved.ingress - moved.saved_ingress) == (egress, ingress)
    assert moved.find_busiest(in_switch=True) <= moved.find_busiest()


def test_the_cheapest_way_is_the_cheapest_with_and_without_help() -> None:
    ways = (link.all_reduce(10, WORLD), link.all_gather(16, WORLD))
    least = link.take_least(*ways)
    assert least.find_busiest() == ways[1].find_busiest() == 14
    assert least.find_busiest(in_switch=True) == ways[0].find_busiest(in_switch=True) == 10


def test_no_problem_saves_more_than_it_moves() -> None:
    for problem in list_problems():
        for world in problem.list_worlds("tiny"):
            for cost in problem.rank_costs("tiny", "bfloat16", world):
                moved = cost.link
                assert 0 <= moved.saved_egress <= moved.egress, problem.stem
                assert 0 <= moved.saved_ingress <= moved.ingress, problem.stem
