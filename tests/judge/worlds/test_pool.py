"""Worlds that are forked before they are needed. On the CPU that takes no time; here they wait all the same."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from helpers.unequal import let_processes_differ
from pkb.candidate import Candidate
from pkb.failure import Failure
from pkb.judge.correctness.reference import References
from pkb.judge.judge import Judge
from pkb.judge.timing.blocks import TimedWorld
from pkb.judge.worlds.sandboxed import Sandbox
from pkb.judge.worlds.world import World
from pkb.platforms import find_platform
from pkb.problems.suite import load_problem
from pkb.record import Verdict
from pkb.settings import JudgementSettings, ProblemSettings, Rigor
from pkb.trial import Trial

RIGOR = Rigor("few", 2, 1.0, least_pairs=2, calls_per_block=2, most_pairs=2, checked_blocks=1)
DIES = b"import os\ndef solution(tensor):\n    os._exit(3)\n"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    # With one hidden size, what is expected is known after the first judgement.
    monkeypatch.setattr("pkb.judge.setup.setup._FEW_SIZES", 1)
    monkeypatch.setattr(find_platform("cpu"), "count_spare_worlds", lambda size: 3 // size)
    monkeypatch.setattr(find_platform("cpu"), "has_slow_start", True)
    with Judge("cpu") as judge:
        yield judge


def close_processes(judge: Judge) -> None:
    """Let the pool believe that candidates cannot reach other processes."""
    judge.sandbox.facts = replace(judge.sandbox.facts, processes="closed")


def test_as_many_worlds_wait_as_were_asked_for_and_the_first_is_taken(judge: Judge) -> None:
    judge.pool.begin(1, timed=True, reference_known=False)
    first, second = judge.pool.references
    judge.pool.begin(1, timed=True, reference_known=False)
    assert judge.pool.take_reference(1) is first
    assert first.started
    assert judge.pool.references == [second]


def test_worlds_of_another_size_make_room(judge: Judge) -> None:
    judge.pool.begin(1, timed=True, reference_known=False)
    before = [*judge.pool.references, *judge.pool.candidates]
    judge.pool.begin(2, timed=True, reference_known=False)
    assert [world.size for world in judge.pool.references] == [2, 2]
    assert len(before) == 3
    assert all(world.ended for world in before)


def test_judgements_leave_worlds_to_each_other_unless_one_goes_wrong(judge: Judge) -> None:
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct
    close_processes(judge)
    left = [*judge.pool.references]
    # Forked when the clocks had stopped, for the next judgement.
    assert len(left) == 3
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct
    # The reference's results are known.
    assert [world.ended for world in left] == [True, False, False]
    assert judge.pool.references[:2] == left[1:]
    assert judge.judge(setup, Candidate.of(DIES), JudgementSettings(rigor=RIGOR, screen=False)).verdict is Verdict.CRASH
    assert judge.pool.references == []
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct


def test_nothing_is_left_that_a_candidate_could_have_reached(judge: Judge) -> None:
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    assert judge.judge(setup, Candidate.reference(problem)).correct
    left = [*judge.pool.references]
    judge.sandbox.facts = replace(judge.sandbox.facts, processes="open")
    assert judge.judge(setup, Candidate.reference(problem)).correct
    assert left
    assert all(world.ended for world in left)


def test_candidates_find_a_world_that_was_forked_for_them(judge: Judge) -> None:
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct
    close_processes(judge)
    (waiting,) = judge.pool.candidates
    assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=RIGOR)).correct
    assert waiting.ended
    assert judge.pool.candidates != [waiting]


def test_all_worlds_of_a_judgement_are_forked_while_its_reference_runs(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = waiting_at(judge, monkeypatch, References, "get")
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=1, trials=1))
    for rigor in (None, RIGOR):
        judge.pool.drop()
        judge.draw_new_seeds()
        assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=rigor)).correct
    assert waiting == [(1, 1), (2, 1)]


def test_where_worlds_may_not_wait_those_of_candidate_and_reference_start_side_by_side(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge.platform, "count_spare_worlds", lambda size: 0)
    early = waiting_at(judge, monkeypatch, References, "get")
    later = waiting_at(judge, monkeypatch, Sandbox, "open_world")
    trials = waiting_at(judge, monkeypatch, Judge, "load")
    problem = load_problem("allreduce")
    setup = judge.pose(problem, ProblemSettings(nproc=2, trials=1))
    let_processes_differ(monkeypatch)
    for rigor in (None, RIGOR):
        assert judge.judge(setup, Candidate.reference(problem), JudgementSettings(rigor=rigor)).correct
    assert early == [(0, 0), (0, 0)]
    # The candidate's own world was taken from the pool just before.
    assert later == [(0, 0), (1, 0)]
    assert trials == [(0, 0), (0, 0)]


def waiting_at(judge: Judge, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> list[tuple[int, int]]:
    """How many worlds wait for references, and for candidates, each time that this is called."""
    seen = []
    original = getattr(where, name)

    def spied(*args: Any, **kwargs: Any) -> Any:
        seen.append((len(judge.pool.references), len(judge.pool.candidates)))
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
    assert judge.sandbox.facts.refused[first] == "not allowed here"


def test_where_no_level_is_left_every_candidate_gets_a_record(judge: Judge) -> None:
    problem = load_problem("allreduce")
    judge.sandbox._attempts = []
    for _ in range(2):
        record = judge.judge(judge.pose(problem, ProblemSettings(nproc=1, trials=1)), Candidate.reference(problem))
        assert (record.verdict, record.evidence.check) == (Verdict.ENVIRONMENT, "sandbox")


def test_a_world_that_cannot_start_is_not_missed_while_clocks_run(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.pool.begin(1, timed=True, reference_known=False)
    first, second = judge.pool.references

    def fail() -> None:
        first.end(kill=True)
        raise Failure(Verdict.ENVIRONMENT, "no room", check="start")

    monkeypatch.setattr(first, "start", fail)
    with judge.pool.quiet():
        assert judge.pool.references == [second]
        assert second.started
    assert len(judge.pool.references) == 3


def test_nothing_is_forked_while_clocks_run(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: list[bool] = []
    time_block = TimedWorld.time_block

    def spied(self: TimedWorld, trial: Trial) -> None:
        waiting = [*judge.pool.references, *judge.pool.candidates]
        under_way.extend(not world.started for world in waiting)
        time_block(self, trial)

    monkeypatch.setattr(TimedWorld, "time_block", spied)
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


@pytest.mark.parametrize("preloaded", [(), ("nturl2path", "not_installed_anywhere")])
def test_candidates_find_imported_what_their_platform_says(
    monkeypatch: pytest.MonkeyPatch, preloaded: tuple[str, ...]
) -> None:
    monkeypatch.setattr(find_platform("cpu"), "preloaded_for_candidates", preloaded)
    looks = b"import sys\nfound = 'nturl2path' in sys.modules\ndef solution(tensor):\n    return tensor + (not found)\n"
    with Judge("cpu") as judge:
        setup = judge.pose("allreduce", ProblemSettings(nproc=1, trials=1))
        assert judge.judge(setup, Candidate.of(looks), JudgementSettings(screen=False)).correct == bool(preloaded)
