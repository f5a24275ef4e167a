"""Reference ranks that are born before they are needed. On the CPU births take no time; here they are made to wait."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.unequal import let_processes_differ
from pkb.candidate import Candidate
from pkb.failure import Failure
from pkb.judge.correctness.reference import References
from pkb.judge.judge import Judge
from pkb.judge.timing.blocks import Side
from pkb.judge.worlds.world import World
from pkb.platforms import platform_named
from pkb.problems.suite import load_problem
from pkb.record import Verdict
from pkb.sandbox.processes import children_of
from pkb.settings import JudgementSettings, ProblemSettings, Rigor

RIGOR = Rigor("few", 2, 1.0, calls=4, calls_per_block=2, most_pairs=2, checked_blocks=1)
DIES = b"import os\ndef solution(tensor):\n    os._exit(3)\n"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    monkeypatch.setattr(platform_named("cpu"), "spare_worlds", lambda size: 3 // size)
    monkeypatch.setattr(platform_named("cpu"), "born_slowly", True)
    with Judge("cpu") as judge:
        yield judge


def born(judge: Judge) -> list[World]:
    return list(judge.spares._waiting)


def are_stopped(judge: Judge, count: int) -> bool:
    """Whether the system has come to stop so many ranks."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        ranks = children_of(judge.nursery.process.pid)
        states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in ranks]
        if states.count("T") == count:
            return True
        time.sleep(0.01)
    return False


def test_so_many_are_born_and_the_first_is_taken(judge: Judge) -> None:
    judge.spares.bear(1, 2)
    first, second = born(judge)
    judge.spares.bear(1, 2)
    assert judge.spares.take(1) is first
    assert first.started
    assert born(judge) == [second]


def test_worlds_of_another_size_make_room(judge: Judge) -> None:
    judge.spares.bear(1, 3)
    before = born(judge)
    judge.spares.bear(2, 2)
    assert [world.size for world in born(judge)] == [2, 2]
    assert all(world.ended for world in before)


def test_judgements_leave_spares_to_each_other_unless_one_goes_wrong(judge: Judge) -> None:
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct
    judge.sandbox.facts["processes"] = "closed"
    left = born(judge)
    # Begun when the clocks had stopped, for the next judgement.
    assert len(left) == 3
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct
    # The reference's results are known.
    assert [world.ended for world in left] == [True, False, False]
    assert born(judge)[:2] == left[1:]
    assert judge.judge(setup, Candidate.of(DIES), JudgementSettings(rigor=RIGOR, screen=False)).verdict is Verdict.CRASH
    assert born(judge) == []
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct


def test_nothing_is_left_that_a_candidate_could_have_reached(judge: Judge) -> None:
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    assert judge.judge(setup, Candidate.reference(problem)).correct
    left = born(judge)
    judge.sandbox.facts["processes"] = "open"
    assert judge.judge(setup, Candidate.reference(problem)).correct
    assert left
    assert all(world.ended for world in left)


def test_candidates_find_a_world_that_was_born_for_them(judge: Judge) -> None:
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct
    judge.sandbox.facts["processes"] = "closed"
    (waiting,) = judge.sandbox._waiting
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct
    assert waiting.ended
    assert judge.sandbox._waiting != [waiting]


def test_all_worlds_of_a_judgement_are_born_while_its_reference_runs(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = waiting_at(judge, monkeypatch, References, "get")
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    for rigor in (None, RIGOR):
        judge._drop_waiting()
        judge.draw_new_seeds()
        assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=rigor)).correct
    assert waiting == [(1, 1), (2, 1)]


def test_where_worlds_may_not_wait_those_of_a_candidate_and_its_clock_are_born_together_when_it_is_time(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge.platform, "spare_worlds", lambda size: 0)
    early = waiting_at(judge, monkeypatch, References, "get")
    later = waiting_at(judge, monkeypatch, Judge, "candidate_world")
    trials = waiting_at(judge, monkeypatch, Judge, "load")
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=1))
    let_processes_differ(monkeypatch)
    for rigor in (None, RIGOR):
        assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=rigor)).correct
    assert early == [(0, 0), (0, 0)]
    assert later == [(0, 1), (1, 1)]
    assert trials == [(0, 0), (0, 0)]


def waiting_at(judge: Judge, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> list[tuple[int, int]]:
    """How many worlds wait for references, and for candidates, each time that this is called."""
    seen = []
    original = getattr(where, name)

    def spied(*args: Any, **kwargs: Any) -> Any:
        seen.append((len(born(judge)), len(judge.sandbox._waiting)))
        return original(*args, **kwargs)

    monkeypatch.setattr(where, name, spied)
    return seen


def test_a_level_that_fails_ahead_of_time_is_not_the_end(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    first, inside = judge.sandbox._attempts[0]

    def refused_at_first(*args: Any, sandbox: str, **rest: Any) -> World:
        if sandbox == inside:
            raise Failure(Verdict.ENVIRONMENT, "not allowed here", check="sandbox")
        return World(*args, sandbox=sandbox, **rest)

    monkeypatch.setattr("pkb.judge.worlds.sandboxed.World", refused_at_first)
    problem = load_problem("allreduce")
    assert judge.judge(judge.pose(problem, ProblemSettings(nproc=1, trials=1)), Candidate.reference(problem)).correct
    assert judge.sandbox.facts["refused"][first] == "not allowed here"


def test_where_no_level_is_left_every_candidate_is_told_so(judge: Judge) -> None:
    problem = load_problem("allreduce")
    judge.sandbox._attempts = []
    for _ in range(2):
        record = judge.judge(judge.pose(problem, ProblemSettings(nproc=1, trials=1)), Candidate.reference(problem))
        assert (record.verdict, record.evidence["check"]) == (Verdict.ENVIRONMENT, "sandbox")


def test_a_birth_that_is_held_up_goes_on_when_it_is_wanted(judge: Judge) -> None:
    judge.spares.bear(2, 2)
    judge.spares.pause()
    first, second = born(judge)
    assert (first.paused, second.paused) == (True, True)
    assert are_stopped(judge, 4)
    assert judge.spares.take(2) is first
    assert (first.paused, second.paused) == (False, True)
    assert are_stopped(judge, 2)
    judge.spares.bear(2, 1)
    assert not second.paused
    assert are_stopped(judge, 0)
    first.end()


def test_worlds_end_though_their_birth_is_held_up(judge: Judge) -> None:
    judge.spares.bear(1, 3)
    judge.spares.pause()
    worlds = born(judge)
    worlds[0].end()
    judge.spares.drop()
    assert all(world.ended for world in worlds)


def test_nothing_is_born_while_clocks_run(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: list[bool] = []
    block = Side.block

    def spied(self: Side, trial: int) -> None:
        waiting = [*born(judge), *judge.sandbox._waiting]
        under_way.extend(not (world.started or world.paused) for world in waiting)
        block(self, trial)

    monkeypatch.setattr(Side, "block", spied)
    let_processes_differ(monkeypatch)
    problem = load_problem("allreduce")
    for _ in range(2):
        assert judge.judge(
            judge.pose(problem, ProblemSettings(nproc=1, trials=1)),
            Candidate.reference(problem),
            JudgementSettings(rigor=RIGOR),
        ).correct
    assert under_way
    assert not any(under_way)
    assert not any(world.paused for world in [*born(judge), *judge.sandbox._waiting])


@pytest.mark.parametrize("preloaded", [(), ("nturl2path", "not_installed_anywhere")])
def test_candidates_find_imported_what_their_platform_says(
    monkeypatch: pytest.MonkeyPatch, preloaded: tuple[str, ...]
) -> None:
    monkeypatch.setattr(platform_named("cpu"), "preloaded_for_candidates", preloaded)
    looks = b"import sys\nfound = 'nturl2path' in sys.modules\ndef solution(tensor):\n    return tensor + (not found)\n"
    with Judge("cpu") as judge:
        setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
        assert judge.judge(setup, Candidate.of(looks), JudgementSettings(screen=False)).correct == bool(preloaded)
