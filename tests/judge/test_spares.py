"""Reference ranks that are born before they are needed. On the CPU births take no time; here they are made to wait."""

from collections.abc import Iterator
from typing import Any

import pytest

from pkb.candidate import Candidate
from pkb.judge import Judge
from pkb.judge.failure import Failure
from pkb.judge.reference import Reference, References
from pkb.judge.rigor import Rigor
from pkb.judge.world import World
from pkb.platforms import platform_named
from pkb.record import Verdict
from pkb.registry import load

RIGOR = Rigor("few", 2, 1.0, calls=4, calls_per_block=2, most_pairs=2, checked_blocks=1)
DIES = b"import os\ndef solution(tensor):\n    os._exit(3)\n"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    monkeypatch.setattr(platform_named("cpu"), "spare_worlds", lambda size: 4 // size)
    with Judge("cpu") as judge:
        yield judge


def born(judge: Judge) -> list[World]:
    return list(judge.spares._waiting)


def with_gaits(judge: Judge, *gaits_us: float) -> None:
    judge.spares.drop()
    for gait_us in gaits_us:
        judge.spares._waiting.append(judge.spares._birth(1))
        judge.spares._waiting[-1].gait_us = gait_us
    judge.spares.settle()


def test_the_closest_in_pace_is_taken_and_the_others_wait_on(judge: Judge) -> None:
    with_gaits(judge, 1.6, 1.9, 1.8)
    world = judge.spares.like(1, 1.81)
    assert world.gait() == 1.8
    assert world.started
    assert len(born(judge)) == 2


def test_others_are_born_when_none_is_close(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    coming = iter([1.5, 1.72, 1.0])
    monkeypatch.setattr(World, "_measured_gait", lambda world: next(coming))
    with_gaits(judge, 1.6, 1.9)
    assert judge.spares.like(1, 1.71).gait() == 1.72
    assert len(born(judge)) == 3


def test_the_closest_must_do_in_the_end(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    coming = iter([1.0, 1.2, 1.1, 1.3, 1.15])
    monkeypatch.setattr(World, "_measured_gait", lambda world: next(coming))
    assert judge.spares.like(1, 1.8).gait() == 1.3
    assert next(coming, None) is None
    assert len(born(judge)) == 3


def test_two_are_enough_where_none_is_chosen(judge: Judge) -> None:
    judge.spares.bear(1, choice=False)
    assert len(born(judge)) == 2


def test_worlds_of_another_size_make_room(judge: Judge) -> None:
    judge.spares.bear(1, choice=True)
    before = born(judge)
    assert len(before) == 3
    judge.spares.bear(2, choice=True)
    assert [world.size for world in born(judge)] == [2, 2]
    assert all(world.ended for world in before)


def test_judgements_leave_spares_to_each_other_unless_one_goes_wrong(judge: Judge) -> None:
    problem = load("allreduce")
    setup = judge.pose(problem, nproc=1, trials=1)
    assert judge.judge(setup, Candidate.reference(problem), rigor=RIGOR).correct
    judge.sandbox.facts["processes"] = "closed"
    left = born(judge)
    # Begun when the clocks had stopped, for the next judgement.
    assert len(left) == 4
    assert judge.judge(setup, Candidate.reference(problem), rigor=RIGOR).correct
    assert [world.ended for world in left].count(True) == 1
    assert len(set(born(judge)) & set(left)) == 3
    assert judge.judge(setup, Candidate.of(DIES), rigor=RIGOR, screen=False).verdict is Verdict.CRASH
    assert born(judge) == []
    assert judge.judge(setup, Candidate.reference(problem), rigor=RIGOR).correct


def test_nothing_is_left_that_a_candidate_could_have_reached(judge: Judge) -> None:
    problem = load("allreduce")
    setup = judge.pose(problem, nproc=1, trials=1)
    assert judge.judge(setup, Candidate.reference(problem)).correct
    left = born(judge)
    judge.sandbox.facts["processes"] = "open"
    assert judge.judge(setup, Candidate.reference(problem)).correct
    assert left
    assert all(world.ended for world in left)


def test_candidates_find_a_world_that_was_born_for_them(judge: Judge) -> None:
    problem = load("allreduce")
    setup = judge.pose(problem, nproc=1, trials=1)
    assert judge.judge(setup, Candidate.reference(problem), rigor=RIGOR).correct
    judge.sandbox.facts["processes"] = "closed"
    first, second = judge.sandbox._waiting
    # Measured while all was quiet, before the clocks: the next judgement need not wait for that.
    assert None not in (first.gait_us, second.gait_us)
    assert judge.judge(setup, Candidate.reference(problem), rigor=RIGOR).correct
    assert first.ended
    assert judge.sandbox._waiting[0] is second


def test_even_the_first_candidates_world_is_born_while_the_reference_runs(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = []
    get = References.get

    def spied(self: References, *args: Any) -> Reference:
        waiting.append(len(judge.sandbox._waiting))
        return get(self, *args)

    monkeypatch.setattr(References, "get", spied)
    problem = load("allreduce")
    assert judge.judge(judge.pose(problem, nproc=1, trials=1), Candidate.reference(problem)).correct
    assert waiting == [1]


def test_a_level_that_fails_ahead_of_time_is_not_the_end(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    first, inside = judge.sandbox._attempts[0]

    def refused_at_first(*args: Any, sandbox: str, **rest: Any) -> World:
        if sandbox == inside:
            raise Failure(Verdict.ENVIRONMENT, "not allowed here", check="sandbox")
        return World(*args, sandbox=sandbox, **rest)

    monkeypatch.setattr("pkb.judge.sandbox.World", refused_at_first)
    problem = load("allreduce")
    assert judge.judge(judge.pose(problem, nproc=1, trials=1), Candidate.reference(problem)).correct
    assert judge.sandbox.facts["refused"][first] == "not allowed here"


def test_where_no_level_is_left_every_candidate_is_told_so(judge: Judge) -> None:
    problem = load("allreduce")
    judge.sandbox._attempts = []
    for _ in range(2):
        record = judge.judge(judge.pose(problem, nproc=1, trials=1), Candidate.reference(problem))
        assert (record.verdict, record.evidence["check"]) == (Verdict.ENVIRONMENT, "sandbox")


def test_a_candidate_is_reborn_until_a_reference_launches_at_its_pace(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = load("allreduce")
    setup = judge.pose(problem, nproc=1, trials=1)
    assert judge.judge(setup, Candidate.reference(problem)).correct
    judge.sandbox.facts["processes"] = "closed"
    with_gaits(judge, 1.0, 1.1)
    judge.sandbox.drop()
    coming = iter([1.3, 1.2, 1.1, 1.3, 1.3])

    def measured(world: World) -> float:
        return 1.0 if world.blame is Verdict.ENVIRONMENT else next(coming)

    monkeypatch.setattr(World, "_measured_gait", measured)
    record = judge.judge(setup, Candidate.reference(problem), rigor=RIGOR)
    assert record.timing is not None, record.reason
    assert record.timing["gait_us"] == {"candidate": 1.1, "reference": 1.1}
